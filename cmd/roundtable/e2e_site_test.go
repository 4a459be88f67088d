package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// A venue is a repository and the program that serves it, as a user runs it.
type venue struct {
	at, root, data, workspace, admin string
	stop                             func() int // ends the program and returns its exit code
	seen                             *seen
}

// tracked are the files of the repository that a venue governs.
var tracked = map[string]string{
	"a.txt":       "one\ntwo\nthree\n",
	"b.txt":       "uno\ndos\ntres\n",
	"dir/c.txt":   "eins\nzwei\ndrei\n",
	"greeting.go": "package greeting\n",
}

// a diff that changes the second line of a.txt.
const diffA = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"

// one that does not fit.
const diffWrong = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-deux\n+zwei\n three\n"

// repository makes a Git repository with one commit.
func repository(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "repository")
	for name, text := range tracked {
		writeFile(t, filepath.Join(root, name), text)
	}
	sh(t, root, "git", "init", "--quiet", "--initial-branch=main")
	sh(t, root, "git", "add", ".")
	sh(t, root, "git", "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "first")
	return root
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sh runs a command and returns what it wrote to standard output.
func sh(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, &errs)
	}
	return string(out)
}

// environment is what env asks, as a map.
func environment(m map[string]string) func(string) string {
	return func(k string) string { return m[k] }
}

// output collects what a program writes from several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// initiated is a repository with a data folder, and nothing that serves it.
func initiated(t *testing.T) *venue {
	t.Helper()
	s := &venue{root: repository(t), seen: newSeen()}
	var out, errs output
	if code := run(t.Context(), []string{"init", s.root, "--json"}, terminal{out: &out, err: &errs, env: environment(nil)}); code != 0 {
		t.Fatalf("init: %d\n%s", code, &errs)
	}
	var m made
	if err := json.Unmarshal([]byte(out.String()), &m); err != nil {
		t.Fatal(err)
	}
	s.data, s.workspace, s.admin = m.Data, m.Workspace, m.Token
	return s
}

// served is a venue whose program runs until the test ends.
func served(t *testing.T, flags ...string) *venue {
	t.Helper()
	s := initiated(t)
	s.start(t, flags...)
	t.Cleanup(func() {
		if code := s.stop(); code != 0 {
			t.Errorf("serve ended with %d", code)
		}
	})
	return s
}

// start runs the program on s.
func (s *venue) start(t *testing.T, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan string, 1), make(chan int, 1)
	args := append([]string{"serve", "--data", s.data, "--addr", "127.0.0.1:0", "--rate", "0", "--allow-unsandboxed", "--log-level", "warn"}, flags...)
	var errs output
	go func() {
		ended <- run(ctx, args, terminal{out: io.Discard, err: &errs, env: environment(nil), ready: ready})
	}()
	s.stop = sync.OnceValue(func() int {
		cancel()
		code := <-ended
		if text := errs.String(); code != 0 || strings.Contains(text, `"level":"ERROR"`) {
			t.Errorf("the server wrote:\n%s", text)
		}
		return code
	})
	select {
	case s.at = <-ready:
	case code := <-ended:
		t.Fatalf("serve: %d\n%s", code, &errs)
	}
}

// A request is one HTTP call. An empty method is that of a route's write, POST.
type request struct {
	method, path string // path below /api/v1, "~" for the workspace's
	token        string // "-" for none
	key          string // "-" for none, else one of its own
	media        string
	body         any // string and []byte as they are, else JSON
	header       map[string]string
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

func (a answer) String() string { return fmt.Sprintf("%d %.2000s", a.status, a.raw) }

// at reads a value as text.
func (a answer) at(path ...string) string { return text(a.body, path...) }

// send sends a request, and holds the answer to its schema.
func (s *venue) send(t *testing.T, q request) answer {
	t.Helper()
	r := s.request(t, q)
	client := &http.Client{Timeout: 2 * time.Minute}
	res, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.raw, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	if media := res.Header.Get("Content-Type"); strings.HasSuffix(media, "json") {
		if err := json.Unmarshal(a.raw, &a.body); err != nil {
			t.Fatalf("%s %s: %v: %s", r.Method, r.URL.Path, err, a.raw)
		}
		s.seen.check(t, r.Method, r.URL.EscapedPath(), a)
	}
	return a
}

func (s *venue) request(t *testing.T, q request) *http.Request {
	t.Helper()
	var body io.Reader
	switch b := q.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	case []byte:
		body = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	if q.method == "" {
		q.method = "POST"
	}
	path := strings.Replace(q.path, "~", "/workspaces/"+s.workspace, 1)
	r, err := http.NewRequestWithContext(t.Context(), q.method, s.at+"/api/v1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	switch q.token {
	case "":
		r.Header.Set("Authorization", "Bearer "+s.admin)
	case "-":
	default:
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.method != "GET" && q.method != "HEAD" {
		if q.media == "" {
			q.media = "application/json"
		}
		r.Header.Set("Content-Type", q.media)
		switch q.key {
		case "":
			r.Header.Set("Idempotency-Key", ulid.Make().String())
		case "-":
		default:
			r.Header.Set("Idempotency-Key", q.key)
		}
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	return r
}

// get reads, and fails the test unless the answer is a success.
func (s *venue) get(t *testing.T, token, path string) answer {
	t.Helper()
	a := s.send(t, request{method: "GET", path: path, token: token})
	if a.status != 200 {
		t.Fatalf("GET %s: %s", path, a)
	}
	return a
}

// post writes, and fails the test unless the answer has the status.
func (s *venue) post(t *testing.T, token, path string, in any, want int) answer {
	t.Helper()
	a := s.send(t, request{path: path, token: token, body: in})
	if a.status != want {
		t.Fatalf("POST %s: %s, want %d", path, a, want)
	}
	return a
}

// refused sends what must be refused with a status and a code.
func (s *venue) refused(t *testing.T, q request, status int, code string) answer {
	t.Helper()
	a := s.send(t, q)
	if a.status != status || a.at("code") != code {
		t.Errorf("%s %s: %s, want %d %s", q.method, q.path, a, status, code)
	}
	return a
}

// join makes a principal with roles in the workspace and returns its token.
func (s *venue) join(t *testing.T, name, kind string, roles ...string) (token string) {
	t.Helper()
	_, token = s.joinAs(t, name, kind, "team-"+name, s.workspace, roles...)
	return token
}

func (s *venue) joinAs(t *testing.T, name, kind, owner, workspace string, roles ...string) (id, token string) {
	t.Helper()
	grants := []args{}
	for _, r := range roles {
		grants = append(grants, args{"workspace_id": workspace, "role": r})
	}
	in := args{"name": name, "kind": kind, "roles": grants}
	if kind != "human" {
		in["owner"] = owner
	}
	id = s.post(t, "", "/principals", in, 201).at("principal", "principal_id")
	return id, s.token(t, args{"principal_id": id})
}

// token issues one.
func (s *venue) token(t *testing.T, in args) string {
	t.Helper()
	return s.post(t, "", "/tokens", in, 201).at("token")
}

// head is the position of the newest event.
func (s *venue) head(t *testing.T) string {
	t.Helper()
	return s.get(t, "", "/events?limit=1").at("position")
}

// query writes query parameters.
func query(kv ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(kv); i += 2 {
		q.Add(kv[i], kv[i+1])
	}
	return q.Encode()
}
