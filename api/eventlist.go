package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// filter is what a reader of events asks for.
type filter struct {
	Type   []string `json:"type,omitempty" jsonschema:"only these types, such as proposal.created" maxitems:"50" maxlen:"100"`
	Stream string   `json:"stream,omitempty" jsonschema:"only this stream, such as proposal/P-…" maxlen:"200"`
	Actor  string   `json:"actor,omitempty" jsonschema:"only what this principal did" maxlen:"100"`
}

// matches reports whether fr is one that a reader of workspace, "" for all,
// asked for.
func (q filter) matches(fr *frame, workspace string) bool {
	return (workspace == "" || fr.workspace == workspace) && (q.Stream == "" || fr.stream == q.Stream) &&
		(q.Actor == "" || fr.actor == q.Actor) && (len(q.Type) == 0 || slices.Contains(q.Type, fr.typ))
}

type eventListIn struct {
	After int64 `json:"after,omitempty" jsonschema:"only events after this position" min:"0"`
	Limit int   `json:"limit,omitempty" jsonschema:"how many, 50 if not given" min:"1" max:"200"`

	Since time.Time `json:"since,omitzero" jsonschema:"only what happened at this time or later"`
	Until time.Time `json:"until,omitzero" jsonschema:"only what happened before this time"`
	filter
}

// finds reports whether r is one that is listed.
func (in eventListIn) finds(r events.Record, workspace string) bool {
	fr := frame{workspace: r.Workspace, typ: r.Type, stream: string(r.Stream), actor: r.Actor}
	return in.matches(&fr, workspace) && !r.Time.Before(in.Since) && (in.Until.IsZero() || r.Time.Before(in.Until))
}

// scanPages bounds how many pages of the log one answer looks through for
// events that match.
const scanPages = 64

// Ops returns the lists of events.
func (f *Feed) Ops() []op.Op {
	list := func(o op.Op) op.Op {
		o.Out = op.ListOf[events.Record]("events")
		return op.Of(o, f.list)
	}
	return []op.Op{
		list(op.Op{Name: "event.list", Route: "GET /api/v1/workspaces/{workspace_id}/events", May: op.May{Any: true},
			Doc: "List what happened in a workspace, oldest first; next_cursor is the after of the next page."}),
		list(op.Op{Name: "log.list", Route: "GET /api/v1/events", May: everywhere(),
			Doc: "List what happened on the whole server, oldest first; next_cursor is the after of the next page."}),
	}
}

// Extras returns the streams of events.
func (f *Feed) Extras() []Extra {
	return []Extra{
		{Media: "text/event-stream", Serve: f.serve, Op: op.Op{
			Name: "event.stream", Route: "GET /api/v1/workspaces/{workspace_id}/events/stream", May: op.May{Any: true},
			Doc: "Follow what happens in a workspace as server-sent events, from after or the header Last-Event-ID on.", In: op.SchemaOf[streamIn]()}},
		{Media: "text/event-stream", Serve: f.serve, Op: op.Op{
			Name: "log.stream", Route: "GET /api/v1/events/stream", May: everywhere(),
			Doc: "Follow what happens on the whole server as server-sent events, from after or the header Last-Event-ID on.", In: op.SchemaOf[streamIn]()}},
	}
}

// everywhere is the right to read the events of all workspaces.
func everywhere() op.May {
	return op.May{Roles: []auth.Role{auth.Auditor, auth.Admin}, Everywhere: true}
}

// list answers one page. It looks through a bounded part of the log: a page
// may hold fewer events than asked for, or none, and still have a next one.
func (f *Feed) list(ctx context.Context, c op.Call, in eventListIn) (op.Answer, error) {
	if err := f.known(ctx, c); err != nil {
		return op.Answer{}, err
	}
	head, _, err := f.Log.Head(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	if in.After > head {
		return op.Answer{}, beyond(in.After, head)
	}
	if in.Limit == 0 {
		in.Limit = 50
	}
	found, at := []events.Record{}, in.After
	for range scanPages {
		recs, err := f.Log.Since(ctx, at, pageSize)
		if err != nil {
			return op.Answer{}, err
		}
		for _, r := range recs {
			if at = r.Position; in.finds(r, c.Workspace) {
				found = append(found, r)
			}
			if len(found) == in.Limit {
				break
			}
		}
		if len(found) == in.Limit || len(recs) < pageSize {
			break
		}
	}
	a := op.Answer{Name: "events", Value: found, Position: max(head, at), List: true}
	if at < a.Position {
		a.Next = strconv.FormatInt(at, 10)
	}
	return a, nil
}

// known checks that the workspace of a call exists.
func (f *Feed) known(ctx context.Context, c op.Call) error {
	if c.Workspace == "" {
		return nil
	}
	return f.Known(ctx, c.Workspace)
}

func beyond(after, head int64) error {
	return fault.Errorf(fault.Invalid, "invalid_position", "the log ends at position %d and has none at %d yet", head, after).
		At("/after", "is beyond the end of the log").With("head", head)
}

// start returns the position to stream from: that of the header
// Last-Event-ID, which a client sends by itself when it comes back, else
// after, else the beginning.
func start(r *http.Request, after int64) (int64, error) {
	last := strings.TrimSpace(r.Header.Get("Last-Event-ID"))
	if last == "" {
		return after, nil
	}
	n, err := strconv.ParseInt(last, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Errorf(fault.Invalid, "invalid_field", "the header Last-Event-ID must be a position").At("/after", "must be a position")
	}
	return n, nil
}
