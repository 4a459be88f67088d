package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// fail answers err as a problem. What is no fault is logged here, once.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := entryOf(r.Context())
	kind := fault.KindOf(err)
	e.kind, e.code = kind, fault.CodeOf(err)
	if kind == fault.Internal {
		if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
			e.kind, e.code = "gone", "gone" // nobody is left to be told
			return
		}
		s.Logger.ErrorContext(r.Context(), "request failed", "request_id", e.id, "op", e.op, "error", err)
	}
	switch kind {
	case fault.Unauthenticated:
		challenge := `Bearer realm="roundtable"`
		if e.code != "authentication_required" {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	case fault.Limit, fault.Unavailable:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "1")
		}
	case fault.TooLarge:
		w.Header().Set("Connection", "close") // the rest of the body is not worth reading
	}
	s.problem(w, r, op.Status(kind), err)
}

// problem answers err under a status that is not that of its kind, where HTTP
// itself has one, and is otherwise called by fail only.
func (s *server) problem(w http.ResponseWriter, r *http.Request, code int, err error) {
	e := entryOf(r.Context())
	p := op.Problem(err, e.id)
	e.kind, e.code = fault.KindOf(err), fault.CodeOf(err)
	p["type"] = fmt.Sprintf("urn:roundtable:problem:%v", p["code"])
	p["title"] = strings.NewReplacer("_", " ", ".", ": ").Replace(fmt.Sprint(p["code"]))
	p["status"] = code
	b, err := json.Marshal(p)
	if err != nil { // a fault with facts that are no JSON is a broken program
		panic(err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("ETag")
	w.WriteHeader(code)
	s.send(w, r, b)
}

// limited answers that the caller has to wait.
func (s *server) limited(w http.ResponseWriter, wait time.Duration) error {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", fmt.Sprint(max(1, seconds)))
	return fault.Errorf(fault.Limit, "rate_limited", "too many requests: wait %d s", max(1, seconds)).With("retry_after_seconds", max(1, seconds))
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	api := strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/v1/")
	if rest := s.Mounts["/"]; rest != nil && !api {
		rest.ServeHTTP(w, r)
		return
	}
	s.fail(w, r, fault.Errorf(fault.NotFound, "route_not_found", "there is nothing at this path; /api/v1/openapi.json lists what there is"))
}

// notAllowed answers a method that a path does not have, and OPTIONS, which
// every path has.
func (s *server) notAllowed(w http.ResponseWriter, r *http.Request) {
	allow := strings.Join(s.methods(r), ", ")
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.problem(w, r, http.StatusMethodNotAllowed,
		fault.Errorf(fault.Invalid, "method_not_allowed", "this path takes %s", allow))
}
