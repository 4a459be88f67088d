package main

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A session is one agent's, through the official client.
type session struct {
	*sdk.ClientSession
	outs map[string]*jsonschema.Schema // by tool
}

type withBearer struct{ token string }

func (b withBearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP connects to the server itself.
func (s *venue) overHTTP(token string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: s.at + "/mcp", HTTPClient: &http.Client{Transport: withBearer{token}}}
}

// overStdio starts `roundtable mcp`, which asks the server.
func (s *venue) overStdio(token string) sdk.Transport {
	cmd := exec.Command("roundtable", "mcp")
	cmd.Env = append(os.Environ(), "ROUNDTABLE_SERVER="+s.at, "ROUNDTABLE_TOKEN="+token)
	return &sdk.CommandTransport{Command: cmd}
}

// embedded starts `roundtable mcp` on the data folder itself.
func (s *venue) embedded(token string) sdk.Transport {
	cmd := exec.Command("roundtable", "mcp", "--data", s.data)
	cmd.Env = append(os.Environ(), "ROUNDTABLE_TOKEN="+token)
	return &sdk.CommandTransport{Command: cmd}
}

func connected(t *testing.T, tr sdk.Transport) *session {
	t.Helper()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &session{cs, map[string]*jsonschema.Schema{}}
	for _, tool := range c.tools(t) {
		raw, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		c.outs[tool.Name] = compiled(raw)
	}
	return c
}

func (c *session) tools(t *testing.T) []*sdk.Tool {
	t.Helper()
	r, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.NextCursor != "" {
		t.Error("the list of tools has a second page, for which some clients never ask")
	}
	return r.Tools
}

// do calls a tool that must answer, and holds the answer to the tool's schema.
func (c *session) do(t *testing.T, tool string, in args) map[string]any {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if r.IsError {
		t.Fatalf("%s: %s", tool, r.Content[0].(*sdk.TextContent).Text)
	}
	if s := c.outs[strings.ReplaceAll(tool, ".", "_")]; s == nil {
		t.Errorf("%s is not listed", tool)
	} else if err := s.Validate(r.StructuredContent); err != nil {
		t.Errorf("%s: %v", tool, err)
	}
	if len(r.Content) == 0 || r.Content[0].(*sdk.TextContent).Text == "" {
		t.Errorf("%s: there is no text", tool)
	}
	out, _ := r.StructuredContent.(map[string]any)
	return out
}

// refused calls a tool that must refuse with a code, and returns the problem,
// which stands in the text and in _meta alike.
func (c *session) refused(t *testing.T, tool string, in any, code string) map[string]any {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if !r.IsError || r.StructuredContent != nil {
		t.Fatalf("%s: not refused: %v", tool, r.StructuredContent)
	}
	said := r.Content[0].(*sdk.TextContent).Text
	_, rest, _ := strings.Cut(said, "\n")
	var inText map[string]any
	if err := json.Unmarshal([]byte(rest), &inText); err != nil {
		t.Fatalf("%s: %v: %s", tool, err, said)
	}
	meta, _ := r.Meta["roundtable/error"].(map[string]any)
	if a, b := asJSON(t, inText), asJSON(t, meta); a != b {
		t.Errorf("%s: text %s, meta %s", tool, a, b)
	}
	if text(meta, "code") != code {
		t.Errorf("%s: %s, want %s", tool, said, code)
	}
	return meta
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A tour is the way of one change, by whatever the sessions go over.
type tour struct {
	*venue
	tokens map[string]string
	over   func(token string) sdk.Transport
	// web does something while HTTP is served.
	web func(do func())
}

// as does something in a session of somebody.
func (x *tour) as(t *testing.T, who string, do func(*session)) {
	t.Helper()
	c := connected(t, x.over(x.tokens[who]))
	do(c)
	if err := c.Close(); err != nil {
		t.Errorf("the session of %s: %v", who, err)
	}
}

// cast makes who plays, over HTTP.
func (x *tour) cast(t *testing.T) {
	x.tokens = map[string]string{
		"coder":  x.join(t, "coder", "agent", "implementer", "orchestrator"),
		"critic": x.join(t, "critic", "agent", "implementer", "reviewer", "orchestrator"),
		"ada":    x.join(t, "ada", "human", "operator"),
	}
}

// TestMCPOverHTTP, TestMCPOverStdio and TestMCPEmbedded: the official client
// takes a change from proposal_create to patch_apply.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	s := served(t)
	(&tour{venue: s, over: s.overHTTP, web: func(do func()) { do() }}).walk(t)
}

func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	s := served(t)
	(&tour{venue: s, over: s.overStdio, web: func(do func()) { do() }}).walk(t)
}

func TestMCPEmbedded(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	x := &tour{venue: s, over: s.embedded}
	x.web = func(do func()) {
		s.start(t)
		do()
		if code := s.stop(); code != 0 {
			t.Errorf("serve ended with %d", code)
		}
	}
	x.walk(t)
}

func (x *tour) walk(t *testing.T) {
	x.web(func() { x.cast(t) })
	var proposal, approval string
	x.as(t, "coder", func(c *session) {
		x.affordable(t, c)
		proposal = x.propose(t, c)
	})
	x.as(t, "critic", func(c *session) { x.review(t, c, proposal) })
	x.as(t, "coder", func(c *session) {
		c.refused(t, "patch_apply", args{"proposal_id": proposal}, "author_may_not_apply")
		got := c.do(t, "human_request_approval", args{"subject": "May it?", "reason_md": "The risk is high.", "proposal_id": proposal})
		approval = text(got, "approval", "approval_id")
	})
	x.web(func() {
		path := "~/approvals/" + approval + "/approve"
		x.venue.refused(t, request{path: path, token: x.tokens["critic"], body: args{}}, 403, "people_only")
		x.post(t, x.tokens["ada"], path, args{"reason_md": "Read and tried."}, 200)
	})
	if readFile(t, x.root+"/a.txt") != tracked["a.txt"] {
		t.Error("the file has changed before its time")
	}
	x.as(t, "critic", func(c *session) {
		got := c.do(t, "patch_apply", args{"proposal_id": proposal, "idempotency_key": "once"})
		if text(got, "transaction", "applied") != "yes" || text(got, "transaction", "state") != "applied" {
			t.Errorf("apply: %v", got)
		}
		again := c.do(t, "patch_apply", args{"proposal_id": proposal, "idempotency_key": "once"})
		if text(again, "transaction", "transaction_id") != text(got, "transaction", "transaction_id") {
			t.Errorf("again under the same key: %v", again)
		}
		c.do(t, "transaction_recovery", args{"transaction_id": text(got, "transaction", "transaction_id")})
	})
	if got := readFile(t, x.root+"/a.txt"); got != "one\nzwei\nthree\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := sh(t, x.root, "git", "status", "--porcelain"); got != " M a.txt\n" {
		t.Errorf("git says %q", got)
	}
}

// affordable: the list costs an implementer's model little, and an
// implementer is not shown what it may not.
func (x *tour) affordable(t *testing.T, c *session) {
	total, names := 0, map[string]bool{}
	for _, tool := range c.tools(t) {
		if a := tool.Annotations; a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Errorf("%s lacks annotations", tool.Name)
		}
		names[tool.Name], tool.Annotations = true, nil
		total += len(asJSON(t, tool))
	}
	if total/4 >= 6000 { // four bytes a token
		t.Errorf("the list takes %d tokens", total/4)
	}
	if !names["proposal_create"] || names["vote_cast"] || names["patch_reject"] {
		t.Errorf("an implementer is shown %v", names)
	}
}

// propose claims, proposes what does not fit, corrects and tests it.
func (x *tour) propose(t *testing.T, c *session) (proposal string) {
	claim := c.do(t, "resource_claim", args{"resource_id": "file:a.txt", "claim_type": "write"})
	got := c.do(t, "proposal.create", args{"title": "Two in German", "summary_md": "It was in English.", "patch": diffWrong, "risk": "high"})
	proposal = text(got, "proposal", "proposal_id")
	v := c.do(t, "patch_validate", args{"proposal_id": proposal})
	if v["valid"] != false || !strings.Contains(asJSON(t, v["checks"]), "context_mismatch") {
		t.Errorf("a patch that does not fit: %v", v)
	}
	c.refused(t, "proposal_attach_patch", args{"proposal_id": proposal, "expected_revision": 2, "patch": diffA}, "stale_revision")
	got = c.do(t, "proposal_attach_patch", args{"proposal_id": proposal, "expected_revision": 1, "patch": diffA})
	if text(got, "proposal", "revision") != "2" {
		t.Errorf("attach: %v", got)
	}
	v = c.do(t, "patch_validate", args{"proposal_id": proposal})
	if v["valid"] != true || v["appliable"] != false {
		t.Errorf("a patch that fits, without votes: %v", v)
	}
	c.do(t, "proposal_request_review", args{"proposal_id": proposal})
	run := c.do(t, "test_run", args{"proposal_id": proposal, "command": "git hash-object a.txt"})
	x.tested(t, c, text(run, "test_run", "test_run_id"), "one\nzwei\nthree\n")
	state := c.do(t, "table_get_state", args{})
	if !strings.Contains(asJSON(t, state), text(claim, "claim", "claim_id")) {
		t.Errorf("the state of the table does not show the claim: %v", state)
	}
	return proposal
}

// tested waits for a run of git hash-object and compares what it found.
func (x *tour) tested(t *testing.T, c *session, id, content string) {
	t.Helper()
	var got map[string]any
	eventually(t, func() bool {
		got = c.do(t, "test_get_result", args{"test_run_id": id})
		return text(got, "test_run", "ended_at") != ""
	})
	want := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
	if text(got, "test_run", "state") != "passed" || !strings.Contains(text(got, "log", "text"), want) {
		t.Errorf("the test on the candidate tree: %v, want %s", got, want)
	}
}

// review is refused what is another's, and votes.
func (x *tour) review(t *testing.T, c *session, proposal string) {
	p := c.refused(t, "resource_claim", args{"resource_id": "file:a.txt", "claim_type": "write"}, "claim_conflict")
	if text(p, "holder") == "" || text(p, "expires_at") == "" {
		t.Errorf("the conflict names no holder or end: %v", p)
	}
	c.do(t, "proposal_get", args{"proposal_id": proposal})
	c.do(t, "vote_cast", args{"proposal_id": proposal, "vote": "approve", "reason_md": "Read.", "confidence": 0.5})
	if got := c.do(t, "vote_list", args{"proposal_id": proposal}); len(list(got, "votes")) != 1 {
		t.Errorf("the vote is not read after it was cast: %v", got)
	}
	p = c.refused(t, "patch_apply", args{"proposal_id": proposal}, "gates_not_met")
	if len(list(p, "next")) == 0 || text(list(p, "next")[0], "op") != "human.request_approval" {
		t.Errorf("what would help: %v", p["next"])
	}
}

// eventually asks again and again whether something that must come is there.
func eventually(t *testing.T, there func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !there() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("it did not come within a minute")
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
