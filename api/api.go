// Package api serves the list of operations, the event stream and the OpenAPI
// document over HTTP.
//
// What always holds: an identity comes from the Authorization header alone; a
// request's right is checked before its body is read; a failure is answered as
// a problem (RFC 9457) whose status follows from the fault's kind and nothing
// else; the text of an internal error is logged once and never answered; no
// token, query value or body reaches the log; a slow reader of the stream
// holds up nobody.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"roundtable/internal/auth"
	"roundtable/internal/op"
)

// Bounds that hold where the configuration says nothing, in bytes.
const (
	MaxBody  = 10 << 20 // of a JSON body
	MaxPatch = 32 << 20 // of a text/x-patch body
)

// A Config says what is served and for whom.
type Config struct {
	Ops    []op.Op
	Extras []Extra
	// Mounts are other transports on the same server, each at exactly one path
	// such as "/mcp"; one at "/" gets every path outside /api/ and /v1/ that
	// nothing else has. Request ids, the checks of host and origin, security
	// headers, recovery and the access log hold for them; nothing else does.
	Mounts map[string]http.Handler
	// Authenticate turns a token into who it stands for. A token that is not
	// valid is a fault.Unauthenticated.
	Authenticate func(ctx context.Context, token string) (auth.Principal, error)
	Limiter      *auth.Limiter // of requests per principal; nil: no limit
	// Ready says how the parts do without which the service is not ready.
	Ready   func(ctx context.Context) []Check
	Metrics *prometheus.Registry
	Logger  *slog.Logger
	Now     func() time.Time // the real time: deadlines of connections are made from it
	Hosts   []string         // names, or name:port, that the service answers to besides loopback ones
	Origins []string         // scheme://host[:port] of other origins that may send requests that change something
	// MaxBody and MaxPatch bound bodies, in bytes; 0: the constants above.
	MaxBody, MaxPatch int64
}

// A Check is how one part of the service does.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// An Extra is a route made by hand, for what has no JSON answer: streams,
// logs, raw patches. Its name, route and right are declared like an op's. Its
// In, if any, is the schema of its path and query parameters; Run is not used.
type Extra struct {
	op.Op
	Media string // content type of the answer
	// Serve answers. An error it returns before it has written anything is
	// answered as a problem.
	Serve func(w http.ResponseWriter, r *http.Request, q Request) error
}

// A Request is what an Extra is asked.
type Request struct {
	op.Call
	In []byte // JSON object of the path and query parameters; it fits the Extra's In
	// Again checks once more that the caller's token is valid and that it may.
	Again func(ctx context.Context) error
}

type server struct {
	Config
	router  *chi.Mux
	origins *http.CrossOriginProtection
	metrics *metrics
	zippers sync.Pool
}

// New returns the handler. It fails on ops that op.CheckRoutes refuses
// and on metrics that are registered already.
func New(cfg Config) (http.Handler, error) {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = MaxBody
	}
	if cfg.MaxPatch == 0 {
		cfg.MaxPatch = MaxPatch
	}
	switch {
	case cfg.Authenticate == nil || cfg.Ready == nil || cfg.Now == nil || cfg.Logger == nil || cfg.Metrics == nil:
		return nil, errors.New("api: the configuration lacks a part")
	}
	s := &server{Config: cfg, router: chi.NewRouter(), origins: http.NewCrossOriginProtection()}
	for _, o := range cfg.Origins {
		if err := s.origins.AddTrustedOrigin(o); err != nil {
			return nil, err
		}
	}
	if err := checkRoutes(cfg.Ops, cfg.Extras); err != nil {
		return nil, err
	}
	var err error
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, err
	}
	s.routes()
	return s.observe(s.guard(s.router)), nil
}

func (s *server) routes() {
	for _, o := range s.Ops {
		method, path, _ := strings.Cut(o.Route, " ")
		h := s.asked(o, s.run(o))
		s.router.Method(method, path, h)
		if method == http.MethodGet {
			s.router.Method(http.MethodHead, path, h)
		}
	}
	for _, e := range s.Extras {
		method, path, _ := strings.Cut(e.Route, " ")
		s.router.Method(method, path, s.asked(e.Op, s.extra(e)))
	}
	for path, h := range s.Mounts {
		if path != "/" {
			s.router.Handle(path, h)
		}
	}
	for path, h := range map[string]http.HandlerFunc{
		"/api/v1/openapi.json": s.document(),
		"/healthz":             s.health,
		"/readyz":              s.ready,
		"/metrics":             s.metrics.handler(s.Config.Metrics),
	} {
		s.router.Get(path, h)
		s.router.Head(path, h)
	}
	s.router.NotFound(s.notFound)
	s.router.MethodNotAllowed(s.notAllowed)
}

// checkRoutes checks the ops, and the names and rights of the extras as if
// they were ops.
func checkRoutes(ops []op.Op, extras []Extra) error {
	all := append([]op.Op(nil), ops...)
	for _, e := range extras {
		o := e.Op
		if e.Serve == nil || e.Media == "" {
			return errors.New("api: " + o.Name + " has no media type or nothing that serves it")
		}
		o.Run = func(context.Context, op.Call, []byte) (any, error) { return nil, nil }
		o.In, o.Out = e.input(), op.SchemaOf[struct{}]()
		all = append(all, o)
	}
	return op.CheckRoutes(all)
}

// NewServer returns an HTTP server for h with its timeouts set. All requests
// end with base: cancel it before Shutdown, which waits for open streams. It
// has no timeout for writing, which would cut them.
func NewServer(base context.Context, h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: baseContext(base),
	}
}
