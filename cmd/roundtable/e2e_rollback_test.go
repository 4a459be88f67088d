package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/attest"
	"roundtable/internal/patch"
)

// TestRollbackArtifact: what is kept to take a transaction back is named path
// by path, an image that is gone too; the bytes come as they were.
func TestRollbackArtifact(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder := s.join(t, "coder", "agent", "implementer")
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	writeFile(t, filepath.Join(s.root, "a.txt"), "one\n"+secret+"\x1b[31m\nthree\n")
	sh(t, s.root, "git", "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "--all", "-m", "second")
	tx := s.apply(t, coder, s.change(t))
	path := "~/transactions/" + tx + "/rollback"
	eventually(t, func() bool { return s.get(t, coder, path).at("rollback", "journal") == "none" }) // it goes after the answer
	a := s.get(t, coder, path)
	a.wants(t, "position", "rollback")
	r, _ := a.body["rollback"].(map[string]any)
	files := map[string]any{}
	for _, f := range list(r, "files") {
		files[text(f, "path")] = f
	}
	receipt := s.get(t, coder, "~/transactions/"+tx+"/receipt")
	if len(files) != 5 || r["complete"] != true || text(r, "journal") != "none" || text(r, "repository_state") != "after" || text(r, "receipt_sha256") != attest.Digest(receipt.raw) {
		t.Errorf("%s", a)
	}
	if text(files["link"], "before", "kind") != "absent" || text(files["link"], "after", "link_target") != "a.txt" || text(files["dir/c.txt"], "before", "mode") != "100644" {
		t.Errorf("%v", files)
	}
	if shown := text(r, "reverse", "text"); strings.Contains(string(a.raw), secret) || !strings.Contains(shown, `+[redacted:github-token]\x1b[31m`) || !strings.Contains(shown, "-zwei") {
		t.Errorf("%s", shown)
	}
	s.reverses(t, r, files)
	raw := s.get(t, coder, path+"/raw?path=a.txt")
	if string(raw.raw) != "one\n"+secret+"\x1b[31m\nthree\n" || raw.header.Get("Content-Type") != imageMedia || raw.header.Get("ETag") != `"`+patch.Digest(raw.raw)+`"` {
		t.Errorf("%s %v", raw, raw.header)
	}
	env := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": coder}
	if code, out, errs := ran(t, env, "tx", "before-image", tx, "b.txt"); code != 0 || out != "uno\ndos\ntres\n" {
		t.Errorf("%d %q %s", code, out, errs)
	}
	if code, out, errs := ran(t, env, "tx", "rollback", tx); code != 0 || !strings.Contains(out, "dir/bytes") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	for _, query := range []string{"?path=link", "?path=c.txt", "?path=../a.txt", "?path="} {
		s.refused(t, request{method: "GET", path: path + "/raw" + query}, 404, "no_before_image")
	}
	s.refused(t, request{method: "GET", path: path + "/raw"}, 400, "missing_field")
	s.refused(t, request{method: "GET", path: path + "/raw?path=a.txt&as=x"}, 400, "unknown_field")
	s.imageGone(t, path, text(files["b.txt"], "before", "sha256"), text(files["a.txt"], "before", "sha256"))
}

// reverses checks that the digest of the reverse patch is that of one that
// takes the change back.
func (s *venue) reverses(t *testing.T, r map[string]any, files map[string]any) {
	t.Helper()
	var images []patch.Image
	for name, f := range files {
		side := func(which string) (st patch.State, data []byte) {
			st = patch.State{Kind: patch.Kind(text(f, which, "kind")), Mode: text(f, which, "mode"), SHA256: text(f, which, "sha256")}
			if st.SHA256 != "" {
				data = []byte(readFile(t, filepath.Join(s.data, "blobs", st.SHA256[:2], st.SHA256[2:])))
				st.Size = int64(len(data))
			}
			return st, data
		}
		m := patch.Image{Path: name}
		m.Before, m.Old = side("after")
		m.After, m.New = side("before")
		images = append(images, m)
	}
	data, err := patch.Format(images, false)
	if err != nil || patch.Digest(data) != text(r, "reverse", "patch_digest") {
		t.Errorf("%v: %s, and the artifact has %s", err, data, text(r, "reverse", "patch_digest"))
	}
	there := exec.Command("git", "apply", "--check", "-")
	there.Dir, there.Stdin = s.root, bytes.NewReader(data)
	if out, err := there.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// imageGone takes one image away and spoils another: both are named.
func (s *venue) imageGone(t *testing.T, path, gone, spoilt string) {
	t.Helper()
	blob := func(digest string) string { return filepath.Join(s.data, "blobs", digest[:2], digest[2:]) }
	if err := os.Remove(blob(gone)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(blob(spoilt), []byte("else"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.get(t, "", path)
	r, _ := a.body["rollback"].(map[string]any)
	stored := map[string]string{}
	for _, f := range list(r, "files") {
		stored[text(f, "path")] = text(f, "before", "stored") + " " + text(f, "before", "code")
	}
	if r["complete"] != false || fmt.Sprint(r["missing"]) != "[a.txt b.txt]" || text(r, "reverse", "omitted") == "" ||
		stored["b.txt"] != "no state.artifact_missing" || stored["a.txt"] != "damaged state.artifact_missing" || stored["dir/c.txt"] != "yes " {
		t.Errorf("%s", a)
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		s.refused(t, request{method: "GET", path: path + "/raw?path=" + name}, 503, "state.artifact_missing")
	}
}

// TestReceiptCommit: where changes are committed the receipt names the commit,
// and the repository has it.
func TestReceiptCommit(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	a := s.applied(t, s.lead, s.proposed(t, diffA, "a.txt"))
	file := filepath.Join(t.TempDir(), "receipt.json")
	writeFile(t, file, string(s.get(t, s.coder, "~/transactions/"+a.at("transaction", "transaction_id")+"/receipt").raw))
	v := checked(t, 0, file, "--data", s.data, "--repo", s.root)
	want := attest.Commit{ID: s.git(t, "rev-parse", "main"), Parent: s.git(t, "rev-parse", "main^"), Ref: "refs/heads/main"}
	if v.Receipt.Commit == nil || *v.Receipt.Commit != want || v.Receipt.After.Tree != s.git(t, "rev-parse", "main^{tree}") {
		t.Errorf("%+v %+v", v.Receipt.Commit, v.Receipt.After)
	}
	if r := v.Repository; r.TreeObject != "there" || r.Commit != "there" || len(r.Changed) > 0 || r.Problem != "" {
		t.Errorf("%+v", r)
	}
	if v = checked(t, 0, file, "--data", s.data, "--repo", repository(t)); v.Repository.TreeObject != "not_there" || v.Repository.Commit != "not_there" {
		t.Errorf("%+v", v.Repository)
	}
}
