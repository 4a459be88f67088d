package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// asked does what comes before every op and extra: who asks, how often, and
// whether they may. Nothing of the input has been read then.
func (s *server) asked(o op.Op, next func(http.ResponseWriter, *http.Request, op.Call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e := entryOf(r.Context())
		e.op = o.Name
		from := s.Now()
		defer func() { s.metrics.count(o, e.kind, s.Now().Sub(from)) }()
		c := op.Call{Request: e.id}
		err := func() (err error) {
			if c.Who, err = s.caller(r); err != nil {
				return err
			}
			e.who, e.token = c.Who.ID, c.Who.Token
			if s.Limiter != nil {
				if wait, ok := s.Limiter.Take(c.Who.ID); !ok {
					return s.limited(w, wait)
				}
			}
			if o.InWorkspace() {
				c.Workspace = param(r, op.WorkspaceParam)
			}
			if err := o.Allows(c); err != nil {
				return err
			}
			if c.Key, err = s.key(o, r); err != nil {
				return err
			}
			return next(w, r, c)
		}()
		if err == nil {
			return
		}
		if u, ok := errors.AsType[*unsupported](err); ok {
			w.Header().Set("Accept", u.takes)
			s.problem(w, r, http.StatusUnsupportedMediaType, u.fault)
			return
		}
		s.fail(w, r, err)
	}
}

// caller turns the Authorization header into a principal. There is no other
// way in: a token in a query would stand in logs and histories.
func (s *server) caller(r *http.Request) (auth.Principal, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return auth.Principal{}, fault.Errorf(fault.Unauthenticated, "authentication_required", "this call needs a token: send it as Authorization: Bearer …")
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	if len(headers) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 512 {
		return auth.Principal{}, fault.Errorf(fault.Unauthenticated, "invalid_token", "the Authorization header must be, once, Bearer and a token")
	}
	return s.Authenticate(r.Context(), token)
}

// key returns the idempotency key of a write. Only under /api/v1 must the
// caller have made one.
func (s *server) key(o op.Op, r *http.Request) (string, error) {
	if !o.Writes() {
		return "", nil
	}
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) == 0 && !strings.Contains(o.Route, " /api/v1/"):
		return s.newID(), nil
	case len(keys) == 0:
		return "", op.CheckKey("")
	case len(keys) > 1:
		return "", fault.Errorf(fault.Invalid, "invalid_idempotency_key", "the header Idempotency-Key stands %d times", len(keys))
	}
	return strings.TrimSpace(keys[0]), op.CheckKey(keys[0])
}

// run answers an op.
func (s *server) run(o op.Op) func(http.ResponseWriter, *http.Request, op.Call) error {
	return func(w http.ResponseWriter, r *http.Request, c op.Call) error {
		in, err := s.input(w, r, o, &c)
		if err != nil {
			return err
		}
		out, err := o.Run(r.Context(), c, in)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // stored data must come out as it was stored
		if err := enc.Encode(out); err != nil {
			return err
		}
		code := o.Status
		if code == 0 {
			code = http.StatusOK
		}
		if a, ok := out.(op.Answer); ok && a.Later {
			code = http.StatusAccepted
		}
		w.Header().Set("Content-Type", "application/json")
		s.zip(w, r, code, b.Bytes())
		return nil
	}
}

// extra answers a hand-made route.
func (s *server) extra(e Extra) func(http.ResponseWriter, *http.Request, op.Call) error {
	o := e.Op
	o.In = e.input()
	return func(w http.ResponseWriter, r *http.Request, c op.Call) error {
		in, err := s.input(w, r, o, &c)
		if err != nil {
			return err
		}
		var any map[string]json.RawMessage
		if err := op.Decode(in, o.In, &any); err != nil {
			return err
		}
		again := func(ctx context.Context) error {
			now := c
			if now.Who, err = s.caller(r.WithContext(ctx)); err != nil {
				return err
			}
			return o.Allows(now)
		}
		rec, _ := w.(*recorder)
		err = e.Serve(w, r, Request{Call: c, In: in, Again: again})
		if err != nil && rec != nil && rec.status != 0 {
			entryOf(r.Context()).kind = fault.Internal
			s.Logger.ErrorContext(r.Context(), "answer broken off", "request_id", c.Request, "op", o.Name, "error", err)
			panic(http.ErrAbortHandler) // the client must not take what it has for the whole
		}
		return err
	}
}

// input returns the schema of e's parameters: its own, or none but the path's.
func (e Extra) input() *jsonschema.Schema {
	if e.In != nil {
		return e.In
	}
	return op.SchemaOf[struct{}]()
}

// param returns a path parameter as the client meant it.
func param(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v // the path was matched in its decoded form
	}
	if d, err := unescape(v); err == nil {
		return d
	}
	return v
}

// zip sends a large answer compressed to whoever takes that.
func (s *server) zip(w http.ResponseWriter, r *http.Request, code int, b []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(b) < 4<<10 || !takesGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.WriteHeader(code)
		s.send(w, r, b)
		return
	}
	z, _ := s.zippers.Get().(*gzip.Writer)
	if z == nil {
		z = gzip.NewWriter(nil)
	}
	defer s.zippers.Put(z)
	var small bytes.Buffer
	z.Reset(&small)
	z.Write(b)                        //nolint:errcheck // a bytes.Buffer takes everything
	if err := z.Close(); err != nil { // as does its end
		panic(err)
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Length", strconv.Itoa(small.Len()))
	w.WriteHeader(code)
	s.send(w, r, small.Bytes())
}

// takesGzip reads an Accept-Encoding header.
func takesGzip(accept string) bool {
	return slices.ContainsFunc(strings.Split(accept, ","), func(part string) bool {
		name, q, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		weight, err := strconv.ParseFloat(q, 64)
		return strings.EqualFold(name, "gzip") && (q == "" || err == nil && weight > 0)
	})
}

// send writes the body. That a client has gone is nobody's error.
func (s *server) send(w http.ResponseWriter, r *http.Request, b []byte) {
	if _, err := w.Write(b); err != nil {
		s.Logger.DebugContext(r.Context(), "answer not sent", "request_id", entryOf(r.Context()).id, "error", err)
	}
}
