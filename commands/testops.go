package commands

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// MaxLogPage bounds the part of a log in one answer, in bytes.
const MaxLogPage = 256 << 10

func (h *Handler) testOps() []op.Op {
	const t = ws + "/test-runs/{test_run_id}"
	may := by(append([]auth.Role{auth.Implementer}, testers...)...)
	log := map[string]*jsonschema.Schema{"log": op.SchemaOf[Log]()}
	return []op.Op{
		command[RunTest, wire.TestRun](h, "test_run", op.Op{Route: "POST " + ws + "/test-runs", Status: http.StatusAccepted, Tool: true, May: may,
			Doc: "Start a command on the tree a proposal would give; poll test_get_result for its end."}),
		question(h, op.Op{Name: "test.get_result", Route: "GET " + t, Tool: true, Out: op.OneOf[wire.TestRun]("test_run", log),
			Doc: "Read a test run's state, and its log once it has ended."}, h.testResult),
		command[CancelTest, wire.TestRun](h, "test_run", op.Op{Route: "POST " + t + "/cancel", Tool: true, May: may,
			Doc: "End a test run, with every process it started."}),
	}
}

type testQuestion struct {
	TestRun string `json:"test_run_id"`
	Offset  int    `json:"log_offset,omitempty" jsonschema:"bytes to skip" min:"0"`
	Limit   int    `json:"log_limit,omitempty" jsonschema:"bytes to answer; default 65536, at most 262144" min:"1" max:"262144"`
}

// A Log is a part of what a test run printed.
type Log struct {
	Text   string `json:"text"`
	Offset int    `json:"offset"`
	Next   int    `json:"next_offset"`
	Bytes  int    `json:"total_bytes"`
	End    bool   `json:"end"`
	Error  string `json:"error,omitempty"` // why it cannot be read
}

func (h *Handler) testResult(ctx context.Context, c op.Call, in testQuestion) (op.Answer, error) {
	v, position, err := h.Show(ctx, "test_run", c.Workspace, in.TestRun, c.After)
	if err != nil {
		return op.Answer{}, err
	}
	t, ok := v.(wire.TestRun)
	if !ok {
		return op.Answer{}, fault.Errorf(fault.Internal, "internal", "a test run was read as %T", v)
	}
	return op.Answer{Name: "test_run", Value: t, Position: position, More: map[string]any{"log": h.log(ctx, t, in)}}, nil
}

func (h *Handler) log(ctx context.Context, t wire.TestRun, in testQuestion) Log {
	if t.LogDigest == "" {
		return Log{End: t.EndedAt != nil}
	}
	b, err := h.World.Kept(ctx, t.LogDigest)
	if err != nil {
		return Log{Error: "the log cannot be read; its digest is " + t.LogDigest}
	}
	if in.Limit == 0 {
		in.Limit = 64 << 10
	}
	from := min(max(in.Offset, 0), len(b))
	to := min(from+min(max(in.Limit, 0), MaxLogPage), len(b))
	for to < len(b) && to > from+1 && !utf8.RuneStart(b[to]) {
		to-- // a page ends between characters
	}
	return Log{Text: string(b[from:to]), Offset: from, Next: to, Bytes: len(b), End: to == len(b)}
}
