package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/attest"
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

// tested is apply of a change of high risk that expects a test: people approve
// it, and the test is run first.
func (s *venue) tested(t *testing.T, coder, diff string) (tx string) {
	t.Helper()
	s.post(t, coder, "~/claims", args{"resource_id": "directory:", "claim_type": "write"}, 201)
	p := s.post(t, coder, "~/proposals", args{"title": "one", "summary_md": "two", "patch": diff, "risk": "high", "expected_tests": []string{"git hash-object a.txt"}}, 201).at("proposal", "proposal_id")
	s.post(t, coder, "~/proposals/"+p+"/request-review", args{}, 200)
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	for _, verdict := range []string{"defer", "approve"} {
		h := s.post(t, coder, "~/approvals", args{"subject": "May it?", "reason_md": "High risk.", "proposal_id": p}, 201).at("approval", "approval_id")
		s.post(t, "", "~/approvals/"+h+"/"+verdict, args{"reason_md": "So be it."}, 200)
	}
	eventually(t, func() bool { return s.get(t, "", "~/proposals/"+p+"/gates").body["appliable"] == true })
	a := s.post(t, "", "~/proposals/"+p+"/apply", args{}, 200)
	if a.at("transaction", "applied") != "yes" {
		t.Fatalf("apply: %s", a)
	}
	return a.at("transaction", "transaction_id")
}

// relied holds the evidence of a receipt against what the server says of the
// transaction and the proposal.
func (s *venue) relied(t *testing.T, tx string, r attest.Receipt) {
	t.Helper()
	p := s.get(t, "", "~/proposals/"+r.Proposal)
	proposal, _ := p.body["proposal"].(map[string]any)
	e := r.Evidence
	if len(e.Votes) != 1 || len(e.Approvals) != 1 || len(e.TestRuns) != 1 {
		t.Fatalf("%+v", e)
	}
	vote, approval := list(proposal, "votes")[0], list(proposal, "approvals")
	if e.Votes[0].ID != text(vote, "vote_id") || e.Votes[0].Voter != text(vote, "voter") || e.Votes[0].Vote != "approve" {
		t.Errorf("%+v, and the vote is %v", e.Votes, vote)
	}
	if e.Approvals[0].Verdict != "approved" || !strings.Contains(fmt.Sprint(approval), e.Approvals[0].ID) {
		t.Errorf("%+v, and the approvals are %v", e.Approvals, approval)
	}
	run := s.get(t, "", "~/test-runs/"+e.TestRuns[0].ID)
	if run.at("test_run", "state") != "passed" || e.TestRuns[0].State != "passed" || e.TestRuns[0].Tree != r.After.Tree || e.TestRuns[0].Command != run.at("test_run", "command") {
		t.Errorf("%+v of %s, and the run is %s", e.TestRuns, tx, run)
	}
}

// attestKey is a public key that has signed nothing.
func attestKey(t *testing.T) string {
	t.Helper()
	keys, err := attest.NewRing(t.TempDir()).Public()
	if err != nil {
		t.Fatal(err)
	}
	return keys[0].PEM()
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
	tx := s.tested(t, coder, s.change(t))
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
	s.relied(t, tx, *v.Receipt)
	checked(t, 0, file, "--data", s.data)
	other := filepath.Join(dir, "other,key.pub")
	writeFile(t, other, strings.TrimSpace(attestKey(t))+"\n"+keys)
	checked(t, 0, file, "--key", other)
	checked(t, 0, file, "--key", key, "--key", key, "--data", s.data)
	if code, _, errs := ran(t, nil, "tx", "verify", file, "--key", "/dev/zero"); code != 2 || !strings.Contains(errs, "more than") {
		t.Errorf("an endless key: %d %s", code, errs)
	}
	if code, out, errs := ran(t, nil, "tx", "verify", "/dev/zero", "--key", key); code != 1 || !strings.Contains(out, string(attest.TooLarge)) {
		t.Errorf("an endless receipt: %d %s%s", code, out, errs)
	}
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
