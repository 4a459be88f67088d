package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// spawnIn starts the program as a process of its own, to be ended by the test.
func spawnIn(t *testing.T, dir string, args ...string) *spawned {
	t.Helper()
	s, err := spawn(dir, os.Environ(), append([]string{"--addr", "127.0.0.1:0", "--allow-unsandboxed"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			if _, err := s.term(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// TestServeBegins: in a repository without a data folder serve makes one, says
// the token once, and leaves the repository as Git sees it.
func TestServeBegins(t *testing.T) {
	t.Parallel()
	root := repository(t)
	s := &venue{root: root, data: filepath.Join(root, ".roundtable"), seen: newSeen()}
	p := spawnIn(t, root, "--log-level", "error")
	s.at, s.admin = p.at, regexp.MustCompile(`rt_TK-\S+`).FindString(p.told)
	s.get(t, "", "/me")
	if code, err := p.term(); code != 0 || err != nil {
		t.Fatalf("ended with %d, %v: %s", code, err, &p.errs)
	}
	p = spawnIn(t, root, "--log-level", "error")
	if p.told != "" {
		t.Errorf("at the second start it says %q", p.told)
	}
	s.at = p.at
	all := list(s.get(t, "", "/workspaces").body, "workspaces")
	if len(all) != 1 || text(all[0], "root") != root || text(all[0], "kind") != "git" {
		t.Errorf("workspaces: %v", all)
	}
	if got := sh(t, root, "git", "status", "--porcelain"); got != "" {
		t.Errorf("git sees %q", got)
	}
	info, err := os.Stat(s.data)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data folder: %v, %v", info, err)
	}
}

// TestServeRefuses: what would expose or share the data is refused, and says
// what to do.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	for _, x := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"--addr", "0.0.0.0:0"}, 2, "--tls-cert"},
		{[]string{"--addr", ":0"}, 2, "--insecure"},
		{[]string{"--addr", "example.org:0"}, 2, "--insecure"},
		{[]string{"--addr", "127.0.0.1"}, 2, "host:port"},
		{[]string{"--tls-cert", "x"}, 2, "go together"},
		{[]string{"--store", "postgres://x"}, 2, "SQLite"},
		{[]string{"--log-level", "loud"}, 2, "--log-level"},
	} {
		var errs output
		if code := run(t.Context(), append([]string{"serve", "--data", s.data}, x.args...), terminal{out: io.Discard, err: &errs, env: environment(nil)}); code != x.code || !strings.Contains(errs.String(), x.say) {
			t.Errorf("%v: %d, %s", x.args, code, &errs)
		}
	}
	p := spawnIn(t, ".", "--data", s.data)
	var errs output
	code := run(t.Context(), []string{"serve", "--data", s.data, "--addr", "127.0.0.1:0"}, terminal{out: io.Discard, err: &errs, env: environment(nil)})
	if code == 0 || !strings.Contains(errs.String(), strconv.Itoa(p.cmd.Process.Pid)) {
		t.Errorf("a second server: %d, %s", code, &errs)
	}
}

// TestServeStops: told to stop amid open streams and a running test, the
// program ends well and soon, and what was running is settled at the next
// start.
func TestServeStops(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	p := spawnIn(t, ".", "--data", s.data, "--log-level", "error")
	s.at = p.at
	proposal := s.post(t, "", "~/proposals", args{"title": "x", "summary_md": "y",
		"patch": "diff --git a/go.mod b/go.mod\nnew file mode 100644\n--- /dev/null\n+++ b/go.mod\n@@ -0,0 +1 @@\n+module example.org/x\n"}, 201).at("proposal", "proposal_id")
	stream := s.following(t, "~/events/stream", "", "")
	run := s.post(t, "", "~/test-runs", args{"command": "go test -count=1 -timeout=10m ./...", "proposal_id": proposal}, 202)
	for {
		e, err := stream.next()
		if err != nil {
			t.Fatal(err)
		}
		if text(e, "type") == "test_run.started" {
			break
		}
	}
	if code, err := p.term(); code != 0 || err != nil {
		t.Errorf("ended with %d, %v: %s", code, err, &p.errs)
	}
	s.at = spawnIn(t, ".", "--data", s.data, "--log-level", "error").at
	eventually(t, func() bool {
		return s.get(t, "", "~/test-runs/"+run.at("test_run", "test_run_id")).at("test_run", "ended_at") != ""
	})
	if a := s.get(t, "", "/events/verify"); a.body["ok"] != true {
		t.Errorf("verify: %s", a)
	}
}

// TestHealth: who operates it sees how it does, without a token and without a
// secret.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := served(t)
	s.post(t, "", "~/tasks", args{"title": "a title nobody should see in metrics", "body_md": ""}, 201)
	for path, want := range map[string]string{"/healthz": `(?s)ok`, "/readyz": `(?s)"ok": ?true.*view|view.*"ok": ?true`, "/metrics": `(?m)^roundtable_\w+(\{.*\})? \d`} {
		res, err := http.Get(s.at + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || !regexp.MustCompile(want).Match(b) {
			t.Errorf("%s: %s, %v: %.3000s", path, res.Status, err, b)
		}
		if strings.Contains(string(b), "nobody should see") || strings.Contains(string(b), s.admin) {
			t.Errorf("%s shows what it should not", path)
		}
	}
	var doc struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	res, err := http.Get(s.at + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") || len(doc.Paths) < 30 {
		t.Errorf("openapi %q with %d paths: %v", doc.OpenAPI, len(doc.Paths), err)
	}
}

// TestServeTLS: with a certificate it speaks HTTPS, and nothing else.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	s := served(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.at, "https://127.0.0.1:") {
		t.Fatalf("at %s", s.at)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	res, err := client.Get(s.at + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("%s %s", res.Proto, res.Status)
	}
	if res, err := http.Get(strings.Replace(s.at, "https", "http", 1) + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode == 200 {
			t.Error("it answers without TLS too")
		}
	}
}

// certificate makes one for the loopback address.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(readFile(t, cert)))
	return cert, key, pool
}
