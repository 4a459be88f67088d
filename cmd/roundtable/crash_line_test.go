package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"
)

// TestKilledWithOthersWaiting: a process dies in an apply behind which others
// wait. None of them is lost, and each is applied in its turn.
func TestKilledWithOthersWaiting(t *testing.T) {
	for _, point := range []string{"apply:journal_sync", "apply:create", "apply:report", "apply:reported", "apply:create:2", "apply:reported:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			killedInLine(t, point)
		})
	}
}

func killedInLine(t *testing.T, point string) {
	s := found(t, func(root string) { write(t, root, "a.txt", "a\n", 0o644) })
	v := serving(t, s.data, failpointVar+"="+point)
	s.people(t, v.at, "coder")
	const n = 4
	var paths, keys, asked []string
	for i := range n {
		p := s.appliable(t, v.at, makesFile(fmt.Sprintf("f%d.txt", i)))
		paths, keys = append(paths, s.here("/proposals/"+p+"/apply")), append(keys, ulid.Make().String())
	}
	opens := s.locked(t)
	for i := range n {
		out, err := s.do(t, v.at, "ada", "POST", paths[i], keys[i], args{"wait_seconds": 0})
		want := map[bool]string{true: "applying", false: "pending"}[i == 0]
		if err != nil || text(out, "transaction", "state") != want {
			t.Fatalf("%d: %v, %v", i, out, err)
		}
		asked = append(asked, text(out, "transaction", "transaction_id"))
	}
	opens()
	v.dead(t)
	v = serving(t, s.data)
	for i := range n {
		out, err := s.do(t, v.at, "ada", "POST", paths[i], keys[i], args{"wait_seconds": 60})
		if err != nil || text(out, "transaction", "state") != "applied" || text(out, "transaction", "transaction_id") != asked[i] {
			t.Errorf("%d: %v, %v", i, out, err)
		}
	}
	s.idle(t)
	var begun []string
	for _, e := range list(s.must(t, v.at, "ada", "GET", s.here("/events?limit=200&type=workspace.apply_begun"), nil), "events") {
		begun = append(begun, text(e, "data", "transaction_id"))
	}
	if !slices.Equal(begun, asked) {
		t.Errorf("begun %v, asked %v", begun, asked)
	}
	s.remembered(t, v.at)
	v.stop(t)
	s.sound(t)
}

// locked keeps every process out of the workspace, until the returned function
// is called.
func (s *site) locked(t *testing.T) (opens func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.root, ".roundtable", "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
