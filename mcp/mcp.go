// Package mcp offers the project's ops as tools of the Model Context Protocol,
// over Streamable HTTP and over stdio, in both of the protocol's eras.
//
// What always holds: the caller is whom the credential stands for, looked up
// again for each request, and never what a client says of itself or what a
// session began as. No state of the product hangs on an MCP session. A refusal
// is a result that the model can read, with the same object that HTTP answers;
// of an internal error nobody sees more than an id. Nothing but the protocol
// is written to a client.
package mcp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"roundtable/internal/auth"
	"roundtable/internal/op"
)

// Config is what a Server is made of. All fields without a remark are needed.
type Config struct {
	Ops []op.Op // those with Tool set are offered
	// Authenticate returns whom a token stands for. Its errors are faults;
	// one of another kind than Unauthenticated says that it could not tell.
	Authenticate func(ctx context.Context, token string) (auth.Principal, error)
	// Workspaces returns the ids of the workspaces that who can see. It is
	// asked where a call names none.
	Workspaces  func(ctx context.Context, who auth.Principal) ([]string, error)
	Limiter     *auth.Limiter // requests of each principal; nil for no limit
	Logger      *slog.Logger
	Now         func() time.Time
	Version     string // of the product
	DottedNames bool   // list proposal.create instead of proposal_create
}

// A Server holds the tools. It may be used by many goroutines at once.
type Server struct {
	Config
	lib   *server.MCPServer
	ops   map[string]op.Op  // by listed name
	alias map[string]string // the other spelling → the listed name
	seen  *positions
}

// instructions are what a model is told of the server as a whole.
const instructions = `Roundtable is the only way to change this repository. Claim what you will touch (resource_claim), put up a change (proposal_create, proposal_attach_patch), check it (patch_validate, test_run), ask for reviews (proposal_request_review), then patch_apply.
proposal_explain says what still stands in the way and who can do it. A refusal names in "next" the calls that would help.
Every write takes idempotency_key: repeat a call under the same key and it happens once. workspace_id is needed only where you can see several. Reads already see your own writes.
Long work returns an id at once; poll the matching _get_ tool.`

// listable is what every client accepts as a tool's name.
var listable = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)+$`)

// New returns a server of cfg's ops, or an error that names the op which
// cannot be a tool.
func New(cfg Config) (*Server, error) {
	s := &Server{Config: cfg, ops: map[string]op.Op{}, alias: map[string]string{}, seen: newPositions(4096)}
	hooks := &server.Hooks{}
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if listed, ok := s.alias[r.Params.Name]; ok {
			r.Params.Name = listed
		}
	})
	hooks.AddOnError(func(ctx context.Context, _ any, method mcp.MCPMethod, _ any, err error) {
		s.Logger.InfoContext(ctx, "mcp request refused", "method", string(method), "principal", callerOf(ctx).who.ID, "err", err)
	})
	hooks.AddAfterSubscriptionsListen(func(ctx context.Context, _ any, _ *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
		// There is nothing to subscribe to, so the library ends the stream at
		// once, and loses the acknowledgement unless that was taken by then.
		t := time.NewTimer(5 * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	})
	s.lib = server.NewMCPServer("roundtable", cfg.Version,
		server.WithInstructions(instructions),
		server.WithHooks(hooks),
		server.WithToolCapabilities(false),
		server.WithToolFilter(s.filter),
		server.WithPaginationLimit(200), // some clients never ask for a second page
	)
	tools := slices.Clone(cfg.Ops)
	slices.SortFunc(tools, func(a, b op.Op) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range tools {
		if !o.Tool {
			continue
		}
		listed, other := strings.ReplaceAll(o.Name, ".", "_"), o.Name
		if !listable.MatchString(listed) || len(listed) > 30 {
			return nil, fmt.Errorf("mcp: op %s: %q is no name that every client takes", o.Name, listed)
		}
		if cfg.DottedNames {
			listed, other = other, listed
		}
		if _, twice := s.ops[listed]; twice {
			return nil, fmt.Errorf("mcp: two ops would be the tool %s", listed)
		}
		t, err := tool(o, listed)
		if err != nil {
			return nil, fmt.Errorf("mcp: op %s: %w", o.Name, err)
		}
		s.ops[listed], s.alias[other] = o, listed
		s.lib.AddTool(t, s.handler(o))
	}
	return s, nil
}

// filter leaves the tools that the caller may use. The library asks it for
// each list and again for each call.
func (s *Server) filter(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
	who := callerOf(ctx).who
	return slices.DeleteFunc(slices.Clone(tools), func(t mcp.Tool) bool {
		o, ok := s.ops[t.Name]
		return !ok || !mayEver(o, who)
	})
}

// mayEver reports whether there is a workspace in which who may call o. It
// decides what is shown; the right itself is checked by the op.
func mayEver(o op.Op, who auth.Principal) bool {
	in := []string{""}
	if o.InWorkspace() {
		in = who.Workspaces()
	}
	if ws := who.Scope.Workspace; ws != "" && o.InWorkspace() {
		in = []string{ws}
	}
	return slices.ContainsFunc(in, func(ws string) bool {
		return o.Allows(op.Call{Who: who, Workspace: ws}) == nil
	})
}

// A caller is who sent the request at hand.
type caller struct {
	who     auth.Principal
	counted bool   // has been taken from the limiter
	request string // id that the transport gave the request, if it did
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf returns the caller of the request, or one without an id, who may
// do nothing.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
