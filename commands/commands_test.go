package commands_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/auth"
	"roundtable/internal/blob"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
	"roundtable/internal/wire"
	"roundtable/internal/world"
)

// A table is a handler on a real log and a real repository, with a clock that
// the test moves.
type table struct {
	*commands.Handler
	t     *testing.T
	root  string
	store *sqlitelog.Store
	ws    string

	mu  sync.Mutex
	now time.Time
	key int
	who map[string]auth.Principal
}

func setUp(t *testing.T) *table {
	t.Helper()
	dir := t.TempDir()
	x := &table{t: t, root: filepath.Join(dir, "repo"), now: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), who: map[string]auth.Principal{}}
	x.write("a.txt", "one\ntwo\nthree\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = x.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	var err error
	if x.store, err = sqlitelog.Open(t.Context(), filepath.Join(dir, "log.db"), sqlitelog.Options{Now: x.clock}); err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := world.New(blobs, filepath.Join(dir, "data"), repo.Options{})
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), blobs.Close(), x.store.Close()); err != nil {
			t.Error(err)
		}
	})
	x.Handler = commands.New(commands.Config{Log: x.store, World: w, Policy: policy.Default(), Now: x.clock,
		NewID: func() string { return ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String() }})
	x.ws = x.must(commands.System("", "ws"), commands.AddWorkspace{Root: x.root}).IDs["workspace"]
	return x
}

func (x *table) clock() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now
}

func (x *table) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

func (x *table) write(name, text string) {
	x.t.Helper()
	path := filepath.Join(x.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		x.t.Fatal(err)
	}
}

// join makes a principal with roles in the workspace.
func (x *table) join(name string, kind auth.Kind, owner string, roles ...auth.Role) {
	x.t.Helper()
	c := commands.CreatePrincipal{Label: name, Kind: string(kind), Owner: owner}
	p := auth.Principal{Name: name, Kind: kind, Owner: owner}
	for _, r := range roles {
		c.Roles = append(c.Roles, wire.Role{Workspace: x.ws, Role: string(r)})
		p.Grants = append(p.Grants, auth.Grant{Workspace: x.ws, Role: r})
	}
	p.ID = x.must(commands.System("", "principal "+name), c).IDs["principal"]
	x.who[name] = p
}

// as is a new call of somebody in the workspace.
func (x *table) as(name string) commands.Caller {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.key++
	return commands.Caller{Who: x.who[name], Workspace: x.ws, Key: fmt.Sprint("key-", x.key), Request: "req"}
}

func (x *table) must(by commands.Caller, c commands.Command) commands.Result {
	x.t.Helper()
	r, err := x.Do(x.t.Context(), by, c)
	if err != nil {
		x.t.Fatalf("%s: %v", c.Name(), err)
	}
	return r
}

func (x *table) refused(by commands.Caller, c commands.Command, code string) *fault.Error {
	x.t.Helper()
	_, err := x.Do(x.t.Context(), by, c)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		x.t.Fatalf("%s: %v, want %s", c.Name(), err, code)
	}
	return f
}

func (x *table) head() int64 {
	x.t.Helper()
	at, _, err := x.store.Head(context.WithoutCancel(x.t.Context()))
	if err != nil {
		x.t.Fatal(err)
	}
	return at
}

const change = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"

func propose(patch string) commands.CreateProposal {
	return commands.CreateProposal{Title: "t", Summary: "s", PatchInput: commands.PatchInput{Patch: patch}}
}

// TestKeys: a key names one call of one principal, and a repeat of it answers
// as the first did.
func TestKeys(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Implementer)
	x.join("bob", auth.Human, "", auth.Implementer)
	by := x.as("ann")
	first := x.must(by, propose(change))
	at := x.head()
	again := x.must(by, propose(change))
	if again.Position != first.Position || again.IDs["proposal"] != first.IDs["proposal"] || !again.Repeated || x.head() != at {
		t.Errorf("%+v, then %+v", first, again)
	}
	x.refused(by, propose(strings.Replace(change, "+2", "+zwei", 1)), "idempotency_key_reused")
	other := x.as("bob")
	other.Key = by.Key
	if r := x.must(other, propose(change)); r.IDs["proposal"] == first.IDs["proposal"] {
		t.Error("two principals share a key")
	}
	// A refusal is not stored: the same key tries again.
	by = x.as("ann")
	x.refused(by, commands.ClaimResource{Resource: "file:/x", Type: "write"}, "invalid_resource")
	x.must(by, commands.ClaimResource{Resource: "file:x", Type: "write"})
}

// TestSameKeyAtOnce: however often a call is sent at once, it runs once.
func TestSameKeyAtOnce(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Orchestrator)
	by, before := x.as("ann"), x.head()
	var wg sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		wg.Go(func() {
			r, err := x.Do(t.Context(), by, commands.CreateTask{Title: "t"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = r.IDs["task"]
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("answers differ: %v", ids)
		}
	}
	if at := x.head(); at != before+1 {
		t.Errorf("%d events", at-before)
	}
}

// TestOneClaim: of 64 principals that want one claim at once, one gets it and
// the others are told who has it and until when.
func TestOneClaim(t *testing.T) {
	x := setUp(t)
	for i := range 64 {
		x.join(fmt.Sprint("p", i), auth.Agent, fmt.Sprint("owner", i), auth.Implementer)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, told := "", map[string]int{}
	for i := range 64 {
		by := x.as(fmt.Sprint("p", i))
		wg.Go(func() {
			_, err := x.Do(t.Context(), by, commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				if won != "" {
					t.Error("two winners")
				}
				won = by.Who.ID
				return
			}
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != "claim_conflict" || f.Context["expires_at"] == nil {
				t.Errorf("a loser was told %v", err)
				return
			}
			told[f.Context["holder"].(string)]++
		})
	}
	wg.Wait()
	if won == "" || told[won] != 63 {
		t.Errorf("won by %q, told %v", won, told)
	}
}

// TestWriters: 16 writers, on streams of their own and on one, lose and double
// nothing, and none is refused as busy.
func TestWriters(t *testing.T) {
	x := setUp(t)
	const writers, each = 16, 12
	for i := range writers {
		x.join(fmt.Sprint("w", i), auth.Human, "", auth.Operator)
	}
	before := x.head()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				if _, err := x.Do(t.Context(), x.as(fmt.Sprint("w", i)), commands.CreateTask{Title: "t"}); err != nil {
					t.Error(err)
				}
				if _, err := x.Do(t.Context(), x.as(fmt.Sprint("w", i)), commands.ClaimResource{Resource: fmt.Sprintf("file:%d/%d", i, n), Type: "write"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := x.head() - before; got != 2*writers*each {
		t.Errorf("%d events, want %d", got, 2*writers*each)
	}
	records, err := x.store.Since(t.Context(), 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[events.Stream]int64{}
	for i, r := range records {
		versions[r.Stream]++
		if r.Position != int64(i+1) || r.Version != versions[r.Stream] {
			t.Fatalf("position %d of %s is version %d, want %d", r.Position, r.Stream, r.Version, versions[r.Stream])
		}
	}
}

// TestSecrets: what looks like a secret does not reach the log.
func TestSecrets(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Orchestrator)
	secret := "ghp_" + strings.Repeat("x", 36)
	x.must(x.as("ann"), commands.CreateTask{Title: "use " + secret, Body: secret})
	records, err := x.store.Since(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if strings.Contains(string(r.Data), secret) {
			t.Errorf("%s holds it: %s", r.Type, r.Data)
		}
	}
}

// TestRepeatAfterChange: a repeat gets the first answer also when the same
// wish would be refused by now.
func TestRepeatAfterChange(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Implementer)
	by := x.as("ann")
	p := x.must(x.as("ann"), propose(change)).IDs["proposal"]
	first := x.must(by, commands.RequestReview{Proposal: p})
	x.must(x.as("ann"), commands.WithdrawProposal{Proposal: p})
	x.refused(x.as("ann"), commands.RequestReview{Proposal: p}, "illegal_proposal_transition")
	if again := x.must(by, commands.RequestReview{Proposal: p}); !again.Repeated || again.Position != first.Position {
		t.Errorf("%+v, then %+v", first, again)
	}
}
