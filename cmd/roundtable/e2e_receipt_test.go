package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/attest"
	"roundtable/internal/patch"
)

// change makes a patch of the repository: text, bytes that are no text, a link,
// a mode and a deletion.
func (s *venue) change(t *testing.T) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	sh(t, s.root, "git", "clone", "--quiet", s.root, copied)
	writeFile(t, filepath.Join(copied, "a.txt"), "one\nzwei\nthree\n")
	writeFile(t, filepath.Join(copied, "dir", "bytes"), "\x00\x01\xff")
	if err := os.Remove(filepath.Join(copied, "b.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(copied, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(copied, "dir", "c.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, copied, "git", "add", "--all")
	return sh(t, copied, "git", "diff", "--cached", "--binary", "--full-index")
}

// apply proposes a patch, approves and applies it, and returns the transaction.
func (s *venue) apply(t *testing.T, coder, diff string) (tx string) {
	t.Helper()
	s.post(t, coder, "~/claims", args{"resource_id": "directory:", "claim_type": "write"}, 201)
	p := s.post(t, coder, "~/proposals", args{"title": "one", "summary_md": "two", "patch": diff, "risk": "low"}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	a := s.post(t, "", "~/proposals/"+p+"/apply", args{}, 200)
	if a.at("transaction", "applied") != "yes" {
		t.Fatalf("apply: %s", a)
	}
	return a.at("transaction", "transaction_id")
}

// ran runs the program and returns what it wrote.
func ran(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e output
	code = run(t.Context(), args, terminal{in: strings.NewReader(""), out: &o, err: &e, env: environment(env)})
	return code, o.String(), e.String()
}

// checked runs tx verify and returns its answer.
func checked(t *testing.T, want int, args ...string) (v txVerdict) {
	t.Helper()
	code, out, errs := ran(t, nil, append([]string{"tx", "verify", "--json"}, args...)...)
	if code != want {
		t.Errorf("tx verify %v: %d, want %d\n%s%s", args, code, want, out, errs)
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Errorf("%v: %s%s", err, out, errs)
	}
	return v
}

// TestReceiptFile: a receipt that was fetched is verified in another folder
// with nothing but the public key, also against the history and the repository;
// one that was altered is not.
func TestReceiptFile(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder := s.join(t, "coder", "agent", "implementer")
	tx := s.apply(t, coder, s.change(t))
	env := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": coder}
	dir := t.TempDir()
	file, key, export := filepath.Join(dir, "receipt.json"), filepath.Join(dir, "key.pub"), filepath.Join(dir, "log.ndjson")
	if code, _, errs := ran(t, env, "tx", "receipt", tx, "--out", file); code != 0 {
		t.Fatal(code, errs)
	}
	if code, _, errs := ran(t, env, "tx", "receipt", tx, "--out", file); code != 1 || !strings.Contains(errs, "exists") {
		t.Errorf("over a file: %d %s", code, errs)
	}
	code, keys, _ := ran(t, nil, "key", "show", "--data", s.data)
	if code != 0 {
		t.Fatal(code)
	}
	writeFile(t, key, keys)
	_, lines, _ := ran(t, nil, "log", "export", "--data", s.data)
	writeFile(t, export, lines)

	v := checked(t, 0, file, "--key", key, "--log", export, "--repo", s.root)
	if v.Outcome != "verified" || v.Receipt.Transaction != tx || v.Repository.Tree != "as_after" || len(v.Repository.Changed) > 0 || v.Repository.Problem != "" {
		t.Errorf("%+v %+v", v, v.Repository)
	}
	shown := s.get(t, coder, "~/transactions/"+tx)
	if after := shown.at("transaction", "after_tree"); v.Receipt.After.Tree != after || v.Subjects[0].Digest["gitTree"] != after || shown.at("transaction", "after_paths_digest") != v.Receipt.After.PathsDigest {
		t.Errorf("%+v, and the transaction is %s", v.Receipt, shown)
	}
	checked(t, 0, file, "--data", s.data)
	if v = checked(t, 1, file); v.Class != string(attest.NoTrustedKey) || !strings.Contains(v.Message, "not verified: no trusted key") || v.Receipt != nil {
		t.Errorf("%+v", v)
	}
	if code, out, _ := ran(t, nil, "tx", "verify", file, "--key", key); code != 0 || !strings.HasPrefix(out, "outcome      verified\n") || !strings.Contains(out, tx) {
		t.Errorf("%d %s", code, out)
	}
	s.altered(t, file, key)
	s.otherLogs(t, file, key, lines)
	writeFile(t, filepath.Join(s.root, "a.txt"), "later\n")
	if v = checked(t, 0, file, "--key", key, "--repo", s.root); fmt.Sprint(v.Repository.Changed) != "[a.txt]" || v.Repository.Tree != "other" {
		t.Errorf("%+v", v.Repository)
	}
	if v = checked(t, 0, file, "--key", key, "--repo", filepath.Join(dir, "none")); v.Repository.Problem == "" {
		t.Errorf("%+v", v.Repository)
	}
}

// altered tries a receipt with other bytes in it, and other keys.
func (s *venue) altered(t *testing.T, file, key string) {
	t.Helper()
	dir := t.TempDir()
	good := readFile(t, file)
	var e map[string]any
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(text(e, "payload"))
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.json")
	forged := base64.StdEncoding.EncodeToString(bytes.Replace(payload, []byte(`"status":"passed"`), []byte(`"status":"failed"`), 1))
	for _, c := range []struct {
		text string
		want attest.Class
	}{
		{strings.Replace(good, text(e, "payload"), forged, 1), attest.BadSignature},
		{good[:len(good)/2], attest.Malformed},
		{strings.Replace(good, attest.PayloadType, "text/plain", 1), attest.PayloadKind},
		{strings.Replace(good, `{`, `{"trusted_key":"`+strings.ReplaceAll(readFile(t, key), "\n", `\n`)+`",`, 1), attest.Malformed},
	} {
		writeFile(t, bad, c.text)
		if v := checked(t, 1, bad, "--key", key); v.Class != string(c.want) || v.Receipt != nil {
			t.Errorf("%+v, want %s", v, c.want)
		}
	}
	other := initiated(t)
	if v := checked(t, 1, file, "--data", other.data); v.Class != string(attest.OtherKey) {
		t.Errorf("%+v", v)
	}
	for _, args := range [][]string{{file, "--key", filepath.Join(s.data, "keys", "signing.key")}, {file, "--key", file}, {file, "--key", bad + ".none"}, {bad + ".none", "--key", key}, {}} {
		if code, out, errs := ran(t, nil, append([]string{"tx", "verify"}, args...)...); code != 2 || strings.Contains(out+errs, "MC4CAQ") {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
	}
}

// otherLogs tries a receipt against histories that are not the one it is of.
func (s *venue) otherLogs(t *testing.T, file, key, lines string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log.ndjson")
	all := strings.SplitAfter(strings.TrimSuffix(lines, "\n"), "\n")
	other := initiated(t)
	_, foreign, _ := ran(t, nil, "log", "export", "--data", other.data)
	for _, c := range []struct {
		text string
		want attest.Class
	}{
		{strings.Join(all[:len(all)/2], ""), attest.LogBroken},
		{strings.Join(all[1:], ""), attest.LogBroken},
		{strings.Replace(lines, `"status":"passed"`, `"status":"failed"`, 1), attest.LogBroken},
		{"nothing of the kind\n", attest.LogBroken},
		{"", attest.LogBroken},
		{foreign, attest.LogBroken},
	} {
		writeFile(t, name, c.text)
		if v := checked(t, 1, file, "--key", key, "--log", name); v.Class != string(c.want) || v.Receipt == nil {
			t.Errorf("%s %s, want %s", v.Class, v.Message, c.want)
		}
	}
	if code, _, _ := ran(t, nil, "tx", "verify", file, "--key", key, "--log", name+".none"); code != 2 {
		t.Errorf("no such log: %d", code)
	}
}

// TestReceiptStays: a receipt is the same bytes after a restart and after the
// views were built again; there is none of what is not applied.
func TestReceiptStays(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	s.start(t)
	coder := s.join(t, "coder", "agent", "implementer")
	tx := s.apply(t, coder, s.change(t))
	path := "~/transactions/" + tx + "/receipt"
	first := s.get(t, coder, path)
	if first.header.Get("Content-Type") != attest.EnvelopeMedia || first.header.Get("ETag") != `"`+attest.Digest(first.raw)+`"` {
		t.Errorf("%v", first.header)
	}
	if a := s.send(t, request{method: "GET", path: path, token: coder, header: map[string]string{"If-None-Match": first.header.Get("ETag")}}); a.status != 304 {
		t.Errorf("%s", a)
	}
	s.refused(t, request{method: "GET", path: "~/transactions/TX-0/receipt"}, 404, "transaction_not_found")
	diff := strings.NewReplacer("two", "zwei", "zwei", "deux").Replace(diffA)
	p := s.post(t, coder, "~/proposals", args{"title": "b", "summary_md": "b", "patch": diff, "risk": "low"}, 201).at("proposal", "proposal_id")
	waiting := s.post(t, "", "~/transactions", args{"proposal_id": p}, 201).at("transaction", "transaction_id")
	s.refused(t, request{method: "GET", path: "~/transactions/" + waiting + "/receipt"}, 409, "transaction_not_applied")
	s.refused(t, request{method: "GET", path: "~/transactions/" + waiting + "/rollback"}, 409, "no_rollback_artifact")
	if code := s.stop(); code != 0 {
		t.Fatal(code)
	}
	if code, _, errs := ran(t, nil, "rebuild", "--data", s.data); code != 0 {
		t.Fatal(code, errs)
	}
	s.start(t)
	defer s.stop()
	if again := s.get(t, coder, path); !bytes.Equal(again.raw, first.raw) {
		t.Errorf("%s\n%s", first, again)
	}
}

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

// TestKeysShown: the public key is shown to whoever is known, by the server and
// offline, and the private one is in no answer and no log.
func TestKeysShown(t *testing.T) {
	t.Parallel()
	s := served(t)
	viewer := s.join(t, "vic", "human", "viewer")
	a := s.get(t, viewer, "/keys")
	a.wants(t, "keys", "next_cursor", "position")
	code, out, errs := ran(t, nil, "key", "show", "--data", s.data, "--json")
	var offline, online struct{ Keys []map[string]any }
	if err := json.Unmarshal([]byte(out), &offline); err != nil || code != 0 {
		t.Fatal(code, err, out, errs)
	}
	if err := json.Unmarshal(a.raw, &online); err != nil || len(online.Keys) != 1 || fmt.Sprint(offline) != fmt.Sprint(online) {
		t.Errorf("%v %v %v", err, offline, online)
	}
	s.refused(t, request{method: "GET", path: "/keys", token: "-"}, 401, "authentication_required")
	secret := strings.Split(readFile(t, filepath.Join(s.data, "keys", "signing.key")), "\n")[1]
	_, lines, _ := ran(t, nil, "log", "export", "--data", s.data)
	if strings.Contains(string(a.raw)+out+errs+lines, secret) {
		t.Error("the private key is shown")
	}
	if code, _, errs := ran(t, nil, "key", "show", "--data", t.TempDir()); code != 1 || !strings.Contains(errs, "no key") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestServeKey: a server does not start with a key that others could have read.
func TestServeKey(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	if err := os.Chmod(filepath.Join(s.data, "keys", "signing.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, say := starting(t, s.data); code != 1 || !strings.Contains(say, "chmod 600") {
		t.Errorf("%d %s", code, say)
	}
}
