package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// makesFile is a patch that makes a file of one line.
func makesFile(name string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[1]s\n", name)
}

// proposes brings a proposal of one new file to where nothing but the apply is
// missing.
func (s *venue) proposes(t *testing.T, coder, name string) (proposal string) {
	t.Helper()
	s.post(t, coder, "~/claims", args{"resource_id": "file:" + name, "claim_type": "write"}, 201)
	proposal = s.post(t, coder, "~/proposals", args{"title": name, "summary_md": name, "patch": makesFile(name)}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+proposal+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	return proposal
}

// closes makes the workspace refuse every apply, as one does whose journal is
// damaged, until the returned function is called.
func (s *venue) closes(t *testing.T, tx string) (opens func()) {
	t.Helper()
	dir := filepath.Join(s.root, ".roundtable", "tx", tx+".1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "journal"), "no journal")
	return func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// state checks what a transaction says of itself.
func (a answer) state(t *testing.T, state, applied string) {
	t.Helper()
	if a.at("transaction", "state") != state || a.at("transaction", "applied") != applied {
		t.Errorf("%s, want %s, applied %s", a, state, applied)
	}
}

// transactionControl sees what the way of a transaction without trouble has not.
func (s *venue) transactionControl(t *testing.T, coder string) {
	p := s.proposes(t, coder, "control.txt")
	tx := "~/transactions/" + s.post(t, "", "~/transactions", args{"proposal_id": p}, 201).at("transaction", "transaction_id")
	at := s.head(t)
	a := s.post(t, "", tx+"/validate", args{"reason": "to see"}, 200)
	a.wants(t, "appliable", "checks", "position", "transaction", "valid")
	if a.state(t, "staged", "no"); s.head(t) != at || a.body["appliable"] != true || len(list(a.body, "checks")) != 13 {
		t.Errorf("validate: %s", a)
	}
	opens := s.closes(t, "TX-DAMAGED")
	s.post(t, "", tx+"/apply", args{}, 200).state(t, "failed", "no")
	opens()
	a = s.post(t, "", tx+"/retry", args{"reason": "it is settled"}, 200)
	a.wants(t, "position", "transaction")
	a.state(t, "staged", "no")
	s.post(t, "", tx+"/cancel", args{"reason": "never mind"}, 200).state(t, "cancelled", "no")
	a = s.post(t, "", "~/proposals/"+p+"/apply", args{}, 200)
	a.state(t, "applied", "yes")
	id := a.at("transaction", "transaction_id")
	eventually(t, func() bool { // it is tidied up
		_, err := os.Stat(filepath.Join(s.root, ".roundtable", "tx", id+".1"))
		return os.IsNotExist(err)
	})
	opens = s.closes(t, id)
	defer opens()
	writeFile(t, filepath.Join(s.root, ".roundtable", "tx", id+".1", "commit"), "{}")
	writeFile(t, filepath.Join(s.root, ".roundtable", "tx", id+".1", "attention"), "{}")
	a = s.post(t, "", "~/transactions/"+id+"/resolve", args{"reason": "both are fine"}, 200)
	a.wants(t, "position", "transaction")
	a.state(t, "applied", "yes")
	if a.at("transaction", "resolution", "repository_state") != "after" {
		t.Errorf("resolve: %s", a)
	}
}

// TestControl: what people may do with a transaction in each state, and what is
// refused with what is allowed.
func TestControl(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder, lead := s.join(t, "coder", "agent", "implementer"), s.join(t, "lead", "agent", "orchestrator", "operator")
	p := s.proposes(t, coder, "one.txt")
	a := s.post(t, lead, "~/transactions", args{"proposal_id": p}, 201)
	a.state(t, "staged", "no")
	tx := "~/transactions/" + a.at("transaction", "transaction_id")
	for _, people := range []string{"retry", "cancel", "resolve"} {
		s.refused(t, request{path: tx + "/" + people, token: lead, body: args{"reason": "r"}}, 403, "people_only")
	}
	s.post(t, lead, tx+"/validate", args{}, 200)
	s.post(t, lead, tx+"/stage", args{}, 200).state(t, "staged", "no")
	s.refused(t, request{path: tx + "/resolve", body: args{"reason": "r"}}, 409, "illegal_transaction_transition")
	if a := s.refused(t, request{path: tx + "/retry", body: args{}}, 409, "illegal_transaction_transition"); fmt.Sprint(a.body["allowed"]) != "[transaction.apply transaction.cancel]" {
		t.Errorf("retry of one that has not failed: %s", a)
	}
	s.post(t, "", tx+"/cancel", args{}, 200).state(t, "cancelled", "no")
	s.post(t, "", tx+"/cancel", args{}, 200).state(t, "cancelled", "no")
	for _, move := range []string{"stage", "apply", "retry"} {
		a := s.refused(t, request{path: tx + "/" + move, body: args{}}, 409, "illegal_transaction_transition")
		if allowed, ok := a.body["allowed"].([]any); !ok || len(allowed) != 0 {
			t.Errorf("%s of one that is cancelled: %s", move, a)
		}
	}
	if a = s.get(t, "", "~/proposals/"+p); a.at("proposal", "transaction_state") != "cancelled" {
		t.Errorf("%s", a)
	}
	s.retries(t, coder, lead, p)
}

// retries brings a transaction of p to failures, and on from there.
func (s *venue) retries(t *testing.T, coder, lead, p string) {
	opens := s.closes(t, "TX-DAMAGED")
	a := s.post(t, lead, "~/proposals/"+p+"/apply", args{"reason": "now"}, 200)
	a.state(t, "failed", "no")
	id := a.at("transaction", "transaction_id")
	tx := "~/transactions/" + id
	if a.at("transaction", "failure", "code") != "state.closed" || a.at("transaction", "asked_by") == "" {
		t.Errorf("%s", a)
	}
	a = s.refused(t, request{path: tx + "/apply", body: args{}}, 409, "illegal_transaction_transition")
	if fmt.Sprint(a.body["allowed"]) != "[transaction.retry transaction.cancel]" {
		t.Errorf("%s", a)
	}
	opens()
	s.post(t, "", tx+"/retry", args{}, 200).state(t, "staged", "no")
	s.post(t, "", tx+"/retry", args{}, 200).state(t, "staged", "no")
	a = s.post(t, lead, tx+"/apply", args{"reason": "again"}, 200)
	a.state(t, "applied", "yes")
	var seen []string
	for _, x := range list(a.body["transaction"].(map[string]any), "phases") {
		if text(x, "request_id") == "" || text(x, "actor") == "" || text(x, "log_ref") == "" || len(x["outputs"].(map[string]any)) == 0 {
			t.Errorf("phase %v", x)
		}
		seen = append(seen, text(x, "phase")+text(x, "attempt")+" "+text(x, "status"))
	}
	want := "stage1 completed, validate1 completed, prepare1 failed, stage2 completed, validate2 completed, prepare2 completed, apply2 completed, verify2 completed, finish2 completed"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("phases %s\nwant   %s", got, want)
	}
	for _, move := range []string{"stage", "retry", "cancel"} {
		s.refused(t, request{path: tx + "/" + move, body: args{}}, 409, "illegal_transaction_transition")
	}
	s.refused(t, request{path: tx + "/resolve", body: args{"reason": "r"}}, 409, "state.no_attention")
	s.post(t, lead, tx+"/apply", args{}, 200).state(t, "applied", "yes")

	p = s.proposes(t, coder, "two.txt")
	tx = "~/transactions/" + s.post(t, lead, "~/transactions", args{"proposal_id": p}, 201).at("transaction", "transaction_id")
	s.post(t, coder, "~/proposals/"+p+"/revisions", args{"patch": strings.Replace(makesFile("two.txt"), "+two", "+2", 1), "expected_revision": 1}, 201)
	a = s.get(t, "", tx)
	if a.state(t, "failed", "no"); a.at("transaction", "failure", "code") != "stale_revision" {
		t.Errorf("%s", a)
	}
	s.refused(t, request{path: tx + "/retry", body: args{}}, 409, "stale_revision")
	if a = s.post(t, lead, tx+"/validate", args{}, 200); text(list(a.body, "checks")[0], "status") != "failed" || text(list(a.body, "checks")[1], "status") != "skipped" {
		t.Errorf("%s", a)
	}
}

// TestLineOverHTTP: of eight applies at once each is done, in the order in
// which the log has them, and a repeat tells the same.
func TestLineOverHTTP(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder, lead := s.join(t, "coder", "agent", "implementer"), s.join(t, "lead", "agent", "orchestrator")
	before := s.get(t, "", "/me").at("principal", "principal_id")
	since := time.Now().UTC().Format(time.RFC3339Nano)
	const n = 8
	done := make(chan answer, n)
	var proposals []string
	for i := range n {
		proposals = append(proposals, s.proposes(t, coder, fmt.Sprintf("line%d.txt", i)))
	}
	for i, p := range proposals {
		q := request{path: "~/proposals/" + p + "/apply", token: lead, key: fmt.Sprint("apply ", i), body: args{"wait_seconds": 60}}
		go func() {
			first := s.send(t, q)
			if again := s.send(t, q); again.at("transaction", "transaction_id") != first.at("transaction", "transaction_id") {
				t.Errorf("%s, again %s", first, again)
			}
			done <- first
		}()
	}
	for range n {
		a := <-done
		a.state(t, "applied", "yes")
	}
	begun, ended := s.logged(t, "workspace.apply_begun"), s.logged(t, "workspace.apply_ended")
	if len(begun) != n || !slices.Equal(begun, ended) {
		t.Errorf("begun %v, ended %v", begun, ended)
	}
	wanted := slices.DeleteFunc(s.logged(t, "workspace.transaction_queued"), func(id string) bool { return id == begun[0] })
	if len(wanted) > 0 && !slices.Equal(wanted, slices.DeleteFunc(slices.Clone(begun), func(id string) bool { return !slices.Contains(wanted, id) })) {
		t.Errorf("queued %v, begun %v", wanted, begun)
	}
	who := s.get(t, lead, "/me").at("principal", "principal_id")
	for q, want := range map[string]int{"state=applied": n, "state=pending": 0, "principal_id=" + who: n, "principal_id=" + before: 0,
		"proposal_id=" + proposals[3]: 1, "created_after=" + since: n, "created_before=" + since: 0} {
		if got := len(list(s.get(t, "", "~/transactions?"+q).body, "transactions")); got != want {
			t.Errorf("%s: %d, want %d", q, got, want)
		}
	}
}

// logged returns the transactions of all events of a type, in order.
func (s *venue) logged(t *testing.T, typ string) (ids []string) {
	t.Helper()
	for _, e := range list(s.get(t, "", "~/events?limit=200&type="+typ).body, "events") {
		ids = append(ids, text(e, "data", "transaction_id"))
	}
	return ids
}
