// Package remote offers the ops of a running server as if they were here: the
// same list, each sent over HTTP by its route.
//
// What always holds: a fault of the server comes back as the fault that it
// was, with kind, code, fields, next steps and facts. When it is not known
// whether a write was done, the fault says so (unknown_outcome) and names the
// key under which it can be asked again. The token goes to the server's own
// address only, in a header.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// A Client says which server is meant, and who asks.
type Client struct {
	Base      string       // "http://127.0.0.1:7117"; a path in it is kept
	Token     string       // of whoever asks
	HTTP      *http.Client // nil: one with a transport of its own, which follows no redirect
	MaxAnswer int64        // bytes of an answer; 0: 64 MiB
}

// patchMedia is the content type of a body that is sent as it stands.
const patchMedia = "text/x-patch"

// Ops returns ops with a Run that asks the server. What Run answers is the
// server's answer, a json.RawMessage. Who of a Call plays no part: the server
// knows it from the token.
func Ops(ops []op.Op, c Client) ([]op.Op, error) {
	return asked(ops, c, Client.answer)
}

// Files is Ops for those that answer no JSON. What Run answers is an op.File.
func Files(ops []op.Op, c Client) ([]op.Op, error) {
	return asked(ops, c, Client.file)
}

// A reading turns a response and its body into what an op answers.
type reading func(c Client, o op.Op, call op.Call, resp *http.Response, body []byte) (any, error)

func asked(ops []op.Op, c Client, read reading) ([]op.Op, error) {
	base, err := url.Parse(c.Base)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.User != nil {
		return nil, fault.Errorf(fault.Invalid, "server_address", "%q is no address of a server, such as http://127.0.0.1:7117", c.Base)
	}
	c.Base = strings.TrimRight(base.String(), "/")
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 64<<20)
	if c.HTTP == nil {
		c.HTTP = &http.Client{
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16},
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // the token is for this server
			},
		}
	}
	out := slices.Clone(ops)
	for i, o := range out {
		out[i].Run = func(ctx context.Context, call op.Call, in []byte) (any, error) {
			return c.run(ctx, o, call, in, read)
		}
	}
	return out, nil
}

func (c Client) run(ctx context.Context, o op.Op, call op.Call, in []byte, read reading) (any, error) {
	if o.InWorkspace() && call.Workspace == "" {
		return nil, fault.Errorf(fault.Invalid, "workspace_required", "say which workspace").At("/"+op.WorkspaceParam, "is required")
	}
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if o.Writes() && (strings.TrimSpace(call.Key) == "" || len(call.Key) > 255 || strings.ContainsFunc(call.Key, odd)) {
		return nil, fault.Errorf(fault.Invalid, "invalid_idempotency_key", "An idempotency key has 1 to 255 printable ASCII characters.")
	}
	// A field that stands twice or a text that is no Unicode would be lost in
	// sending it on, so it is refused here as the server would.
	var fields map[string]json.RawMessage
	if err := op.Decode(in, o.In, &fields); err != nil && !(call.Body != nil && fault.CodeOf(err) == "missing_field") {
		return nil, err
	}
	var written atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }}
	r, err := c.request(httptrace.WithClientTrace(ctx, trace), o, call, fields)
	if err != nil {
		return nil, err
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, c.lost(ctx, o, call, written.Load(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.MaxAnswer+1))
	if err != nil {
		return nil, c.lost(ctx, o, call, true, err)
	}
	if int64(len(body)) > c.MaxAnswer {
		return nil, fault.Errorf(fault.TooLarge, "answer_too_large", "The server's answer is larger than %d bytes; ask for less.", c.MaxAnswer)
	}
	return read(c, o, call, resp, body)
}

// request makes the HTTP request of a call, the inverse of what the server
// reads.
func (c Client) request(ctx context.Context, o op.Op, call op.Call, fields map[string]json.RawMessage) (*http.Request, error) {
	method, path, _ := strings.Cut(o.Route, " ")
	for _, name := range o.Params() {
		value := call.Workspace
		if name != op.WorkspaceParam {
			value = text(fields[name])
			delete(fields, name)
		}
		if value == "" || value == "." || value == ".." {
			return nil, fault.Errorf(fault.Invalid, "missing_field", "%s must say which one is meant", name).At("/"+name, "is required")
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
	}
	query := url.Values{}
	var body []byte
	media := ""
	switch {
	case !o.Writes():
		query = asQuery(fields)
		if call.After > 0 && o.In.Properties["after"] == nil {
			query.Set("after", strconv.FormatInt(call.After, 10))
		}
	case call.Body != nil:
		media, body = patchMedia, call.Body
		query = asQuery(fields)
	case len(fields) > 0:
		media = "application/json"
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	target := c.Base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if o.Writes() {
		r.Header.Set("Idempotency-Key", call.Key)
	}
	return r, nil
}

// asQuery writes fields as query parameters: plain values as their text, lists
// and objects as JSON.
func asQuery(fields map[string]json.RawMessage) url.Values {
	q := url.Values{}
	for name, v := range fields {
		q.Set(name, text(v))
	}
	return q
}

// text is a string's text, and of anything else the JSON.
func text(v json.RawMessage) (s string) {
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// lost is the fault of a call that was not answered. sent says whether the
// server may have got it.
func (c Client) lost(ctx context.Context, o op.Op, call op.Call, sent bool, err error) error {
	if o.Writes() && sent {
		return c.unknown(o, call, "The connection to the server was lost before it answered")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The error names the address and the system's reason, and no token.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fault.Errorf(fault.Unavailable, "server_unreachable", "The server at %s cannot be reached: %v. Is it running (roundtable serve)?", c.Base, err).
		With("server", c.Base)
}

func (c Client) unknown(o op.Op, call op.Call, what string) error {
	return fault.Errorf(fault.Unavailable, "unknown_outcome", "%s: %s may or may not have been done. Send it again under the same idempotency key; it will be done once.", what, o.Name).
		With("idempotency_key", call.Key)
}

// answer turns a response into what the op returns.
func (c Client) answer(o op.Op, call op.Call, resp *http.Response, body []byte) (any, error) {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch {
	case resp.StatusCode/100 == 2 && json.Valid(body):
		return json.RawMessage(body), nil
	case media == "application/problem+json":
		if f, ok := faultOf(body); ok {
			return nil, f
		}
	}
	// Not our server's words: a proxy's, or another program's.
	if o.Writes() && (resp.StatusCode/100 == 2 || resp.StatusCode >= 500) {
		return nil, c.unknown(o, call, fmt.Sprintf("The server at %s answered %s and nothing that can be read", c.Base, resp.Status))
	}
	return nil, fault.Errorf(fault.Unavailable, "unexpected_answer", "What answers at %s is no Roundtable server of this version: %s, %s.", c.Base, resp.Status, cmp.Or(media, "no content type"))
}

// file takes the body of a success as it is.
func (c Client) file(o op.Op, call op.Call, resp *http.Response, body []byte) (any, error) {
	if resp.StatusCode == http.StatusOK {
		return op.File(body), nil
	}
	return c.answer(o, call, resp, body)
}

// faultOf reads a problem back into the fault that it was made from.
func faultOf(body []byte) (*fault.Error, bool) {
	var f fault.Error
	known := struct {
		Kind   *fault.Kind    `json:"kind"`
		Code   *string        `json:"code"`
		Detail *string        `json:"detail"`
		Errors *[]fault.Field `json:"errors"`
		Next   *[]fault.Step  `json:"next"`
	}{&f.Kind, &f.Code, &f.Detail, &f.Fields, &f.Next}
	if json.Unmarshal(body, &known) != nil || !slices.Contains(fault.Kinds, f.Kind) || f.Code == "" {
		return nil, false
	}
	var facts map[string]any
	if json.Unmarshal(body, &facts) != nil {
		return nil, false
	}
	for _, name := range []string{"type", "title", "status", "kind", "code", "detail", "errors", "next"} {
		delete(facts, name)
	}
	if f.Kind != fault.Internal {
		delete(facts, "request_id") // the caller's own transport has one too
	}
	if len(facts) > 0 {
		f.Context = facts
	}
	if len(f.Fields) == 0 {
		f.Fields = nil
	}
	if len(f.Next) == 0 {
		f.Next = nil
	}
	return &f, true
}
