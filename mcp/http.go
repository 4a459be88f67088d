package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// HTTPConfig are the bounds of MCP over HTTP. A zero field has the value in
// its remark.
type HTTPConfig struct {
	Origins     []string      // "scheme://host[:port]" of pages that may ask, besides our own on a loopback host
	Metadata    string        // URL of the OAuth metadata that a 401 points to; none: no pointer
	MaxBody     int64         // bytes of one message: 10 MiB
	KeepAlive   time.Duration // between comments on a silent stream, and between looks at its credential: 15 s
	IdleTTL     time.Duration // of a session of the older era; longer than the longest call: 30 min
	MaxSessions int           // open ones of a principal: 1,000
	MaxCalls    int           // requests of a principal at once: 64
	MaxStreams  int           // streams of a principal at once: 16
}

// HTTP serves MCP at the one path where it is mounted. It authenticates every
// request, whatever its method, before the protocol sees it.
type HTTP struct {
	cfg      HTTPConfig
	s        *Server
	next     *server.StreamableHTTPServer
	sessions *sessions
	calls    *inFlight
	streams  *inFlight

	// Contexts under which requests run; the streams' ends first.
	callsCtx, streamsCtx context.Context
	endCalls, endStreams context.CancelFunc

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // requests being served
}

// Handler returns s over HTTP. Close must be called in the end.
func Handler(s *Server, cfg HTTPConfig) *HTTP {
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 10<<20)
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	cfg.IdleTTL = cmp.Or(cfg.IdleTTL, 30*time.Minute)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, 1000)
	h := &HTTP{cfg: cfg, s: s, sessions: newSessions(),
		calls: newInFlight(cmp.Or(cfg.MaxCalls, 64)), streams: newInFlight(cmp.Or(cfg.MaxStreams, 16))}
	h.callsCtx, h.endCalls = context.WithCancel(context.Background())
	h.streamsCtx, h.endStreams = context.WithCancel(h.callsCtx)
	h.next = server.NewStreamableHTTPServer(s.lib,
		server.WithSessionIdManager(h.sessions),
		server.WithSessionIdleTTL(cfg.IdleTTL),
		server.WithEventStore(newReplay(256, 1<<20)),
		server.WithStreamableHTTPLogger(s.Logger),
	)
	return h
}

// Close refuses new requests, ends open streams, and waits for calls in
// flight until ctx ends, which ends them too.
func (h *HTTP) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.endStreams()
	stop := context.AfterFunc(ctx, h.endCalls)
	defer stop()
	h.open.Wait()
	h.endCalls()
	return h.next.Shutdown(context.WithoutCancel(ctx))
}

// enter counts a request in, unless h is closed.
func (h *HTTP) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.open.Add(1)
	}
	return !h.closed
}

// A request is what the checks found out about one.
type request struct {
	who    auth.Principal
	token  string
	modern bool // of the era without sessions
	method string
}

// stream reports whether the answer is a stream that stays open.
func (q request) stream(r *http.Request) bool {
	return r.Method == http.MethodGet || q.method == string(mcp.MethodSubscriptionsListen)
}

// ServeHTTP checks the request and hands it to the protocol.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.enter() {
		h.refuse(w, r, fault.Errorf(fault.Unavailable, "shutting_down", "The service is stopping."))
		return
	}
	defer h.open.Done()
	q, err := h.check(w, r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if q.modern && q.method == "notifications/cancelled" {
		// Here closing the stream is the signal, and the library would cancel
		// whichever call has this number, whoever sent it.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	base, slots := h.callsCtx, h.calls
	if q.stream(r) {
		base, slots = h.streamsCtx, h.streams
	}
	if !slots.take(q.who.ID) {
		h.refuse(w, r, fault.Errorf(fault.Limit, "too_many_at_once", "This principal has %d requests open, as many as it may.", slots.max).With("retry_after_seconds", 1))
		return
	}
	defer slots.give(q.who.ID)
	ctx, cancel := context.WithCancel(withCaller(r.Context(), caller{who: q.who, counted: true, request: requestID(w)}))
	defer cancel()
	defer context.AfterFunc(base, cancel)()

	out := &streamWriter{ResponseWriter: w, every: h.cfg.KeepAlive, stop: make(chan struct{}), end: cancel,
		stands: func() bool {
			_, err := h.s.Authenticate(ctx, q.token)
			k := fault.KindOf(err)
			return err == nil || k != fault.Unauthenticated && k != fault.Forbidden
		},
		onHeader: func(head http.Header) {
			// The id is new here, so nobody else can know it yet.
			if id := head.Get(server.HeaderKeySessionID); id != "" {
				h.sessions.bind(id, q.who.ID)
			}
		}}
	defer out.finish()
	h.next.ServeHTTP(out, r.WithContext(ctx))
}

// requestID is the id that a handler around this one has given the request and
// promised to answer, or "".
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// check goes through what must hold before the protocol sees a request, in
// the order in which a stranger should learn of it.
func (h *HTTP) check(w http.ResponseWriter, r *http.Request) (q request, err error) {
	if o := r.Header.Get("Origin"); o != "" && !h.originOK(o, r.Host) {
		return q, fault.Errorf(fault.Forbidden, "origin_not_allowed", "Pages of %q may not ask this service.", o)
	}
	if q.who, q.token, err = h.authenticate(r); err != nil {
		return q, err
	}
	if h.s.Limiter != nil {
		if wait, ok := h.s.Limiter.Take(q.who.ID); !ok {
			return q, tooFast(wait)
		}
	}
	q.modern = mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion))
	if err := h.ownSession(r, q); err != nil {
		return q, err
	}
	if r.Method != http.MethodPost {
		return q, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		return q, fault.Errorf(fault.TooLarge, "body_too_large", "The message is larger than %d bytes.", h.cfg.MaxBody)
	} else if err != nil {
		return q, fault.Errorf(fault.Invalid, "body_unreadable", "The body could not be read to its end.")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(body, &m) == nil { // what is no such JSON the protocol answers
		q.method = m.Method
	}
	if q.method == string(mcp.MethodInitialize) && h.sessions.open(q.who.ID) >= h.cfg.MaxSessions {
		return q, fault.Errorf(fault.Limit, "too_many_sessions", "This principal has %d sessions open; end some, or wait until they are forgotten.", h.cfg.MaxSessions).With("retry_after_seconds", 60)
	}
	return q, nil
}

// originOK compares whole origins. A page that we serve on a loopback host may
// ask too: no foreign name leads there, since the host is the address itself.
func (h *HTTP) originOK(origin, host string) bool {
	if slices.Contains(h.cfg.Origins, origin) {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	loopback := name == "localhost" || ip != nil && ip.IsLoopback()
	return loopback && (origin == "http://"+host || origin == "https://"+host)
}

func (h *HTTP) authenticate(r *http.Request) (auth.Principal, string, error) {
	heads := r.Header.Values("Authorization")
	if len(heads) == 0 {
		return auth.Principal{}, "", fault.Errorf(fault.Unauthenticated, "authentication_required", "This service needs a token, in the header Authorization: Bearer <token>.")
	}
	scheme, token, _ := strings.Cut(heads[0], " ")
	token = strings.TrimSpace(token)
	if len(heads) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 512 {
		return auth.Principal{}, "", fault.Errorf(fault.Unauthenticated, "invalid_token", "The Authorization header must be, once, Bearer and a token.")
	}
	who, err := h.s.Authenticate(r.Context(), token)
	if err == nil && who.ID == "" {
		err = errors.New("mcp: authenticated as nobody")
	}
	return who, token, err
}

// ownSession checks that a session of the older era belongs to the caller,
// which the library does not.
func (h *HTTP) ownSession(r *http.Request, q request) error {
	id := r.Header.Get(server.HeaderKeySessionID)
	if q.modern || id == "" && r.Method == http.MethodPost {
		return nil
	}
	switch owner, known := h.sessions.of(id); {
	case id == "":
		return fault.Errorf(fault.Invalid, "session_required", "This method needs the header %s.", server.HeaderKeySessionID)
	case !known:
		return fault.Errorf(fault.NotFound, "session_not_found", "There is no such MCP session; begin a new one.")
	case owner != q.who.ID:
		return fault.Errorf(fault.Forbidden, "session_not_yours", "This MCP session belongs to another principal.")
	}
	return nil
}

// refuse answers err as the transport does, outside the protocol.
func (h *HTTP) refuse(w http.ResponseWriter, r *http.Request, err error) {
	id := cmp.Or(requestID(w), h.s.newID())
	p, kind := op.Problem(err, id), fault.KindOf(err)
	head := w.Header()
	switch kind {
	case fault.Internal:
		h.s.Logger.ErrorContext(r.Context(), "mcp request failed", "request", id, "err", err)
	case fault.Unauthenticated:
		challenge := `Bearer realm="roundtable"`
		if h.cfg.Metadata != "" {
			challenge += `, resource_metadata="` + h.cfg.Metadata + `"`
		}
		if r.Header.Get("Authorization") != "" {
			challenge += `, error="invalid_token"`
		}
		head.Set("WWW-Authenticate", challenge)
	case fault.Limit, fault.Unavailable:
		wait, _ := p["retry_after_seconds"].(int)
		head.Set("Retry-After", strconv.Itoa(max(1, wait)))
	}
	p["type"] = fmt.Sprintf("urn:roundtable:problem:%v", p["code"])
	p["title"] = strings.ReplaceAll(fmt.Sprint(p["code"]), "_", " ")
	p["status"] = op.Status(kind)
	head.Set("Content-Type", "application/problem+json")
	head.Set("Cache-Control", "no-store")
	w.WriteHeader(op.Status(kind))
	if err := json.NewEncoder(w).Encode(p); err != nil {
		h.s.Logger.DebugContext(r.Context(), "refusal not sent", "err", err)
	}
}

// inFlight counts what each principal has open.
type inFlight struct {
	max int
	mu  sync.Mutex
	n   map[string]int
}

func newInFlight(max int) *inFlight { return &inFlight{max: max, n: map[string]int{}} }

func (f *inFlight) take(who string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n[who] >= f.max {
		return false
	}
	f.n[who]++
	return true
}

func (f *inFlight) give(who string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n[who]--; f.n[who] == 0 {
		delete(f.n, who)
	}
}
