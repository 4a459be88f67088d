package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/oklog/ulid/v2"

	"roundtable/internal/fault"
)

// An entry is what the access log and the metrics learn of a request while it
// is served. One goroutine has it.
type entry struct {
	id, op, who, token, code string
	kind                     fault.Kind // "" of what went well
}

type entryKey struct{}

func entryOf(ctx context.Context) *entry { return ctx.Value(entryKey{}).(*entry) }

// newID makes an id. ids from outside are not taken: they would let one
// caller's requests pass for another's in the log.
func (s *server) newID() string {
	return ulid.MustNew(ulid.Timestamp(s.Now()), rand.Reader).String()
}

// observe gives each request its id, its security headers, a recovery from
// panics and a line in the log.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entry{id: s.newID()}
		r = r.WithContext(context.WithValue(r.Context(), entryKey{}, e))
		rec := &recorder{ResponseWriter: w}
		from := s.Now()
		secure(rec.Header(), e.id)
		defer func() {
			if p := recover(); p != nil {
				s.recovered(rec, r, p)
			}
			s.logAccess(rec, r, s.Now().Sub(from))
			if rec.broken {
				panic(http.ErrAbortHandler) // the client must not take what it has for the whole
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// secure sets what holds for every answer. A mount may set its own policy over
// it.
func secure(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}

func (s *server) recovered(rec *recorder, r *http.Request, p any) {
	if p == http.ErrAbortHandler {
		rec.broken = true
		return
	}
	e := entryOf(r.Context())
	s.Logger.ErrorContext(r.Context(), "request panicked", "request_id", e.id, "op", e.op, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if rec.status != 0 {
		e.kind, e.code = fault.Internal, "internal"
		rec.broken = true
		return
	}
	s.problem(rec, r, http.StatusInternalServerError, fmt.Errorf("panic: %v", p))
}

// secret finds our tokens where somebody put one into a path.
var secret = regexp.MustCompile(`rt_[0-9A-Za-z-]+_[0-9A-Za-z_-]+`)

// logAccess writes the line. It holds no header, query or body: these may hold
// secrets, and none is needed to find a request again.
func (s *server) logAccess(rec *recorder, r *http.Request, took time.Duration) {
	e := entryOf(r.Context())
	path := secret.ReplaceAllString(r.URL.Path, "rt_…")
	if len(path) > 256 {
		path = strings.ToValidUTF8(path[:256], "") + "…"
	}
	s.Logger.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("request_id", e.id), slog.String("method", r.Method), slog.String("path", path),
		slog.String("op", e.op), slog.Int("status", rec.status), slog.String("code", e.code),
		slog.String("principal", e.who), slog.String("token_id", e.token),
		slog.Int64("bytes", rec.bytes), slog.Int64("duration_ms", took.Milliseconds()))
}

// guard refuses requests under a foreign host name, which is how a web page
// reaches a loopback service (DNS rebinding), and requests of a foreign page
// that change something.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knownHost(r.Host) {
			s.fail(w, r, fault.Errorf(fault.Forbidden, "host_not_allowed", "the service does not answer to this host name; its operator can add it to the configured hosts"))
			return
		}
		if s.origins.Check(r) != nil {
			s.fail(w, r, fault.Errorf(fault.Forbidden, "cross_origin", "a page of another origin may not send this request; the operator can add it to the configured origins"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHost reports whether the Host header names us: exactly, since a prefix
// or suffix can be anybody's.
func (s *server) knownHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return true
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, host) || strings.EqualFold(h, hostport) {
			return true
		}
	}
	return false
}

// methods lists what the path of r takes.
func (s *server) methods(r *http.Request) []string {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	list := []string{http.MethodOptions}
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if s.router.Match(chi.NewRouteContext(), m, path) {
			list = append(list, m)
		}
	}
	return list
}

func baseContext(ctx context.Context) func(net.Listener) context.Context {
	return func(net.Listener) context.Context { return ctx }
}

// A recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	broken bool // after the answer had begun
}

func (w *recorder) WriteHeader(code int) {
	if w.status == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Flush is here for handlers that ask whether a writer can, instead of using a
// ResponseController.
func (w *recorder) Flush() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // the next write tells
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
