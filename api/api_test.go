package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"roundtable/api"
	"roundtable/internal/auth"
)

const (
	edit    = "/api/v1/workspaces/WS-1/proposals/P-1/revisions"
	approve = "/api/v1/workspaces/WS-1/proposals/P-1/approve"
	list    = "/api/v1/workspaces/WS-1/proposals"
)

// TestRefusals: each bad request gets the status, the code and, where a call
// would help, that call.
func TestRefusals(t *testing.T) {
	r := newRig(t, nil)
	j := []string{"Content-Type", "application/json", "Idempotency-Key", "k"}
	for name, c := range map[string]struct {
		method, path, token, body string
		headers                   []string
		status                    int
		code                      string
		has                       string // what the answer holds besides
	}{
		"unknown field":      {"POST", edit, "agent", `{"titel":"a"}`, j, 400, "unknown_field", `did you mean \"title\"`},
		"named actor":        {"POST", edit, "agent", `{"actor":"PR-9"}`, j, 400, "unknown_field", `known from the credential`},
		"wrong type":         {"POST", edit, "agent", `{"title":1,"expected_revision":"x"}`, j, 400, "invalid_field", `"pointer":"/expected_revision"`},
		"no JSON":            {"POST", edit, "agent", `{"title":`, j, 400, "malformed_json", "byte"},
		"two values":         {"POST", edit, "agent", `{} {}`, j, 400, "malformed_json", ""},
		"no object":          {"POST", edit, "agent", `[]`, j, 400, "invalid_field", "must be an object"},
		"not UTF-8":          {"POST", edit, "agent", "{\"title\":\"\xff\"}", j, 400, "malformed_json", "UTF-8"},
		"key twice":          {"POST", edit, "agent", `{"title":"a","title":"b"}`, j, 400, "malformed_json", "twice"},
		"in the path":        {"POST", edit, "agent", `{"proposal_id":"P-2"}`, j, 400, "invalid_field", "stands in the path"},
		"in the path hidden": {"POST", edit, "agent", `{"proposal_\u0069d":"P-2"}`, j, 400, "invalid_field", "stands in the path"},
		"query on a write":   {"POST", edit + "?title=a", "agent", `{}`, j, 400, "unknown_field", `"pointer":"/title"`},
		"form":               {"POST", edit, "agent", `title=a`, []string{"Content-Type", "application/x-www-form-urlencoded", "Idempotency-Key", "k"}, 415, "unsupported_media_type", "text/x-patch"},
		"patch elsewhere":    {"POST", approve + "x", "agent", ``, j, 404, "route_not_found", ""},
		"no key":             {"POST", edit, "agent", `{}`, []string{"Content-Type", "application/json"}, 400, "idempotency_key_required", ""},
		"blank key":          {"POST", edit, "agent", `{}`, []string{"Content-Type", "application/json", "Idempotency-Key", "  "}, 400, "idempotency_key_required", ""},
		"long key":           {"POST", edit, "agent", `{}`, []string{"Content-Type", "application/json", "Idempotency-Key", strings.Repeat("k", 256)}, 400, "invalid_idempotency_key", ""},
		"odd key":            {"POST", edit, "agent", `{}`, []string{"Content-Type", "application/json", "Idempotency-Key", "k\u00e9"}, 400, "invalid_idempotency_key", ""},
		"unknown id":         {"POST", strings.Replace(edit, "P-1", "P-404", 1), "agent", `{}`, j, 404, "proposal_not_found", `"op":"proposal.list"`},
		"stale revision":     {"POST", edit, "agent", `{"expected_revision":9}`, j, 409, "stale_revision", `"revision":2`},
		"no token":           {"POST", edit, "", `{}`, j, 401, "authentication_required", ""},
		"wrong token":        {"POST", edit, "gone", `{}`, j, 401, "invalid_token", ""},
		"other scheme":       {"POST", edit, "", `{}`, append([]string{"Authorization", "Basic YTpi"}, j...), 401, "invalid_token", ""},
		"token in query":     {"GET", list + "?access_token=agent", "", ``, nil, 401, "authentication_required", ""},
		"agent for person":   {"POST", approve, "agent", `no json`, j, 403, "people_only", ""},
		"no role":            {"POST", edit, "person", `no json`, j, 403, "forbidden", `"who":"admin"`},
		"other workspace":    {"GET", strings.Replace(list, "WS-1", "WS-2", 1), "agent", ``, nil, 404, "workspace_not_found", ""},
		"unknown query":      {"GET", list + "?stat=open", "agent", ``, nil, 400, "unknown_field", `did you mean \"state\"`},
		"bad query value":    {"GET", list + "?limit=ten", "agent", ``, nil, 400, "invalid_field", `"pointer":"/limit"`},
		"out of bounds":      {"GET", list + "?limit=201", "agent", ``, nil, 400, "invalid_field", "at most 200"},
		"twice in query":     {"GET", list + "?limit=1&limit=2", "agent", ``, nil, 400, "invalid_field", "more than once"},
		"broken query":       {"GET", list + "?state=%zz", "agent", ``, nil, 400, "malformed_query", ""},
		"query not UTF-8":    {"GET", list + "?state=%ff", "agent", ``, nil, 400, "malformed_query", ""},
		"bad after":          {"GET", list + "?after=-1", "agent", ``, nil, 400, "invalid_field", `"pointer":"/after"`},
		"body on a read":     {"GET", list, "agent", `{}`, j, 400, "unexpected_body", ""},
		"other method":       {"PUT", list, "agent", `{}`, j, 405, "method_not_allowed", "GET"},
		"no route":           {"GET", "/nowhere", "agent", ``, nil, 404, "route_not_found", ""},
		"foreign host":       {"GET", list, "agent", ``, []string{"Host", "evil.example"}, 403, "host_not_allowed", ""},
		"nearly our host":    {"GET", list, "agent", ``, []string{"Host", "127.0.0.1.evil.example"}, 403, "host_not_allowed", ""},
		"foreign page":       {"POST", edit, "agent", `{}`, append([]string{"Origin", "http://evil.example"}, j...), 403, "cross_origin", ""},
		"foreign site":       {"POST", edit, "agent", `{}`, append([]string{"Sec-Fetch-Site", "cross-site"}, j...), 403, "cross_origin", ""},
		"panic":              {"POST", edit, "agent", `{"title":"panic"}`, j, 500, "internal", "under request"},
		"internal":           {"POST", edit, "agent", `{"title":"internal"}`, j, 500, "internal", "under request"},
	} {
		a := r.do(c.method, c.path, c.token, strings.NewReader(c.body), c.headers...)
		if a.status != c.status || a.code() != c.code || !strings.Contains(a.raw, c.has) {
			t.Errorf("%s: got %d %s, want %d %s with %s", name, a.status, a.raw, c.status, c.code, c.has)
		}
		for _, key := range []string{"type", "title", "status", "kind", "code", "detail", "errors", "next", "request_id"} {
			if a.body[key] == nil {
				t.Errorf("%s: the problem has no %s", name, key)
			}
		}
		if a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Request-Id") != a.body["request_id"] ||
			a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", name, a.header)
		}
		if strings.Contains(a.raw, "secret words") {
			t.Errorf("%s: the answer tells what is inside: %s", name, a.raw)
		}
		if challenge := a.header.Get("WWW-Authenticate"); (c.status == 401) != (challenge != "") || strings.Contains(challenge, "invalid_token") != (c.code == "invalid_token") {
			t.Errorf("%s: challenge %q", name, challenge)
		}
	}
	if n := strings.Count(r.lines.String(), "secret words"); n != 2 {
		t.Errorf("two internal errors were logged %d times", n)
	}
}

// TestSizes: a body past its bound is refused, told or not, and one within it
// is taken.
func TestSizes(t *testing.T) {
	r := newRig(t, nil)
	big := `{"patch":"` + strings.Repeat("a", 11<<20) + `"}`
	if a := r.post(edit, "agent", big); a.status != 413 || a.code() != "body_too_large" {
		t.Errorf("11 MiB of JSON: %d %.200s", a.status, a.raw)
	}
	chunked := struct{ io.Reader }{strings.NewReader(big)}
	if a := r.do("POST", edit, "agent", chunked, "Content-Type", "application/json", "Idempotency-Key", "k"); a.status != 413 {
		t.Errorf("11 MiB of JSON without a length: %d %.200s", a.status, a.raw)
	}
	patch := bytes.Repeat([]byte{0xff, 0, '\n', 'a'}, 11<<18)
	a := r.do("POST", edit+"?title=a%20b&expected_tests=go+test+./...&expected_tests=a,b", "agent", bytes.NewReader(patch),
		"Content-Type", "text/x-patch", "Idempotency-Key", "k")
	var got struct {
		Body string
		In   struct {
			Title, Proposal string
			Tests           []string `json:"expected_tests"`
		}
	}
	if err := json.Unmarshal([]byte(a.raw), &got); err != nil || a.status != 201 {
		t.Fatalf("11 MiB of patch: %d %.200s %v", a.status, a.raw, err)
	}
	if got.Body != fmt.Sprintf("%x", sha256.Sum256(patch)) || got.In.Title != "a b" || len(got.In.Tests) != 2 || got.In.Tests[1] != "a,b" {
		t.Errorf("the patch or its query did not come through: %+v", got)
	}
	if a := r.do("POST", edit, "agent", bytes.NewReader(make([]byte, 32<<20+1)), "Content-Type", "text/x-patch", "Idempotency-Key", "k"); a.status != 413 {
		t.Errorf("a patch past 32 MiB: %d", a.status)
	}
	if a := r.do("POST", edit+"?patch=x", "agent", strings.NewReader("p"), "Content-Type", "text/x-patch", "Idempotency-Key", "k"); a.code() != "unknown_field" {
		t.Errorf("a patch twice: %d %s", a.status, a.raw)
	}
}

// TestInput: what is sent arrives as what it is, wherever it stands.
func TestInput(t *testing.T) {
	r := newRig(t, nil)
	a := r.do("GET", list+"?state=open&limit=7&share=0.5&mine=true&labels=a,b&sizes=1&sizes=2&after=41", "agent", nil)
	want := `{"after":41,"in":{"state":"open","limit":7,"share":0.5,"mine":true,"labels":["a","b"],"sizes":[1,2]}}` + "\n"
	if a.status != 200 || a.raw != want {
		t.Errorf("query: %d %s", a.status, a.raw)
	}
	for _, body := range []string{``, `{}`, ` { } `, "\n"} {
		if a := r.post(edit, "agent", body); a.status != 201 || !strings.Contains(a.raw, `"proposal_id":"P-1"`) || !strings.Contains(a.raw, `"key":"k-1"`) {
			t.Errorf("body %q: %d %s", body, a.status, a.raw)
		}
	}
	if a := r.post("/api/v1/workspaces/WS-1/proposals/a%2Fb%25c/revisions", "agent", `{"title":"t"}  `); !strings.Contains(a.raw, `"proposal_id":"a/b%c","title":"t"`) {
		t.Errorf("escaped path: %s", a.raw)
	}
	if a := r.do("HEAD", list, "agent", nil); a.status != 200 || a.raw != "" || a.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %d %q %v", a.status, a.raw, a.header)
	}
	if a := r.do("OPTIONS", list, "", nil); a.status != 204 || a.header.Get("Allow") != "OPTIONS, GET, HEAD" || a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("OPTIONS: %d %v", a.status, a.header)
	}
	if a := r.post(edit, "agent", `{"expected_revision":100000}`); a.status != 201 || a.header.Get("Content-Encoding") != "" {
		t.Errorf("nobody asked for gzip: %v", a.header)
	}
	a = r.do("POST", edit, "agent", strings.NewReader(`{"expected_revision":100000}`),
		"Content-Type", "application/json; charset=UTF-8", "Idempotency-Key", "k", "Accept-Encoding", "br, gzip;q=0.5")
	z, err := gzip.NewReader(strings.NewReader(a.raw))
	if err != nil || a.header.Get("Content-Encoding") != "gzip" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("gzip: %v %v", a.header, err)
	}
	if b, err := io.ReadAll(z); err != nil || len(b) < 100000 {
		t.Errorf("gzip: %d bytes, %v", len(b), err)
	}
}

// TestServerRoutes: what stands beside the ops.
func TestServerRoutes(t *testing.T) {
	bad := []api.Check{{Name: "views", OK: false, Detail: "stopped at 7"}}
	r := newRig(t, func(c *api.Config, _ *api.FeedConfig) {
		c.Ready = func(context.Context) []api.Check { return bad }
		c.Hosts = []string{"table.example"}
		c.Limiter = auth.NewLimiter(1, 3, func() time.Time { return time.Unix(0, 0) })
	})
	if a := r.do("GET", "/healthz", "", nil, "Host", "table.example:7117"); a.status != 200 {
		t.Errorf("healthz: %d", a.status)
	}
	if a := r.do("GET", "/readyz", "", nil); a.status != 503 || !strings.Contains(a.raw, "stopped at 7") {
		t.Errorf("readyz: %d %s", a.status, a.raw)
	}
	doc := r.do("GET", "/api/v1/openapi.json", "", nil)
	tag := doc.header.Get("ETag")
	if doc.body["openapi"] != "3.1.0" || tag == "" {
		t.Errorf("openapi: %v %q", doc.body["openapi"], tag)
	}
	if a := r.do("GET", "/api/v1/openapi.json", "", nil, "If-None-Match", `"x", W/`+tag); a.status != 304 || a.raw != "" {
		t.Errorf("openapi again: %d", a.status)
	}
	for range 3 {
		if a := r.do("GET", list+"?state=open", "agent", nil); a.status != 200 {
			t.Errorf("within the rate: %d", a.status)
		}
	}
	if a := r.do("GET", list, "agent", nil); a.status != 429 || a.code() != "rate_limited" || a.header.Get("Retry-After") != "1" {
		t.Errorf("past the rate: %d %v", a.status, a.header)
	}
	if a := r.do("GET", list, "person", nil); a.status != 200 {
		t.Errorf("another's rate: %d", a.status)
	}
	m := r.do("GET", "/metrics", "", nil)
	for _, line := range []string{`roundtable_http_requests_total{op="proposal.list",outcome="ok"} 4`, `outcome="limit"} 1`, "roundtable_stream_subscribers 0"} {
		if !strings.Contains(m.raw, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	r.do("GET", "/x/rt_TK-1_abcdefgh?token=rt_TK-1_abcdefgh", "agent", nil)
	if lines := r.lines.String(); strings.Contains(lines, "abcdefgh") || strings.Contains(lines, "state=open") || !strings.Contains(lines, "op=proposal.list") {
		t.Errorf("the access log:\n%s", lines)
	}
}
