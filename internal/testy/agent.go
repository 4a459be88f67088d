package testy

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"

	"roundtable/internal/acp"
	"roundtable/internal/acp/schema"
)

// An Agent serves one connection.
type Agent struct {
	opts Options
	conn *acp.Conn
	v1   *v1Agent
	v2   *v2Agent
	// route is what serves the connection: the router at first. It is used on
	// the dispatching goroutine only.
	route func(*acp.Call)
}

// peer is what the agents of both versions share.
type peer struct {
	opts Options
	conn *acp.Conn
	set  *schema.Set
	log  *slog.Logger
}

// Streams are what an agent is connected to. Exit ends the process at once; it
// serves the faults that do so.
type Streams struct {
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
	Exit func(code int, signal os.Signal)
}

// New makes an agent. Nothing happens before Serve.
func New(o Options, s Streams) (*Agent, error) {
	a := &Agent{opts: o}
	log := slog.New(slog.NewTextHandler(s.Err, nil))
	cfg := acp.Config{
		MaxLine: o.MaxLine, Batches: o.Draft != "next", NullIDs: o.Draft != "next",
		IDPrefix: "testy-req-", Log: log,
		Handle: func(c *acp.Call) { a.route(c) },
	}
	out := s.Out
	var f *faulty
	if len(o.faults) > 0 {
		f = newFaulty(o, s)
		out = f.writer(out)
		cfg.Filter = f.filter
		cfg.Handle = func(c *acp.Call) {
			if f.admit(c) {
				a.route(c)
			}
		}
	}
	a.conn = acp.New(s.In, out, cfg)
	if f != nil {
		f.conn = a.conn
	}
	a.v1, a.v2 = newV1(peer{opts: o, conn: a.conn, log: log}), newV2(peer{opts: o, conn: a.conn, log: log})
	switch o.Protocol {
	case "v1":
		a.route = a.v1.handle
		return a, a.v1.use(1, o.Draft == "next")
	case "v2":
		a.route = a.v2.handle
		return a, a.v2.use(2, o.Draft == "next")
	}
	a.route = a.router // which loads the schema of the version that is chosen
	return a, nil
}

// use loads the schema that params are read by.
func (p *peer) use(version int, next bool) (err error) {
	if p.set == nil {
		p.set, err = schema.Load(version, next)
	}
	return err
}

// Serve runs until the input ends, and cancels the running work.
func (a *Agent) Serve(ctx context.Context) error { return a.conn.Serve(ctx) }

// badParams is the error for params that do not decode.
type badParams struct {
	Error string          `json:"error"`
	JSON  json.RawMessage `json:"json"`
	Phase string          `json:"phase"`
}

// decode reads the params of a method as leniently as the schema says.
func decode[T any](p *peer, c *acp.Call) (into T, err error) {
	params := c.Params
	if params == nil {
		params = json.RawMessage("{}")
	}
	fail := func(err error) (T, error) {
		return into, acp.NewError(acp.CodeInvalidParams, badParams{err.Error(), params, "deserialization"})
	}
	m, ok := p.set.Method("agent", c.Method)
	if !ok {
		return into, acp.NewError(acp.CodeMethodNotFound, c.Method)
	}
	clean, err := m.Params.Clean(params)
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(clean, &into); err != nil {
		return fail(err)
	}
	return into, nil
}

// serve is a handler of a request from typed params to a typed result.
func serve[P any](p *peer, c *acp.Call, do func(P) (any, error)) {
	params, err := decode[P](p, c)
	if err != nil {
		c.Reply(nil, err)
		return
	}
	result, err := do(params)
	c.Reply(result, err)
}

// unknown answers a method that does not exist.
func (p *peer) unknown(c *acp.Call) {
	if c.Kind == acp.Notification {
		p.log.Info("unknown notification ignored", "method", c.Method)
		return
	}
	c.Reply(nil, acp.NewError(acp.CodeMethodNotFound, c.Method))
}

// text is a content block as both versions write it.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// values makes strings of a named string type.
func values[T, F ~string](from []F) []T {
	out := make([]T, len(from))
	for i, s := range from {
		out[i] = T(s)
	}
	return out
}
