package main

import (
	"errors"
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

// TestServedLineFull: as many transactions wait as the setting says. One more
// is told so and leaves nothing in the history, and the same call under the
// same key is taken once there is room.
func TestServedLineFull(t *testing.T) {
	t.Parallel()
	s := found(t, func(root string) { write(t, root, "a.txt", "a\n", 0o644) })
	v := serving(t, s.data, "ROUNDTABLE_MAX_WAITING=1")
	s.people(t, v.at, "coder")
	var paths []string
	for i := range 3 {
		paths = append(paths, s.here("/proposals/"+s.appliable(t, v.at, makesFile(fmt.Sprintf("f%d.txt", i)))+"/apply"))
	}
	opens := s.locked(t)
	for _, p := range paths[:2] {
		s.must(t, v.at, "ada", "POST", p, args{"wait_seconds": 0})
	}
	at, key := s.head(t, v.at), ulid.Make().String()
	_, err := s.do(t, v.at, "ada", "POST", paths[2], key, args{})
	if p, ok := errors.AsType[*problem](err); !ok || p.Status != 429 || p.Code != "queue_full" || s.head(t, v.at) != at {
		t.Errorf("%v", err)
	}
	opens()
	for _, p := range paths[:2] {
		if out := s.must(t, v.at, "ada", "POST", p, args{"wait_seconds": 60}); text(out, "transaction", "state") != "applied" {
			t.Errorf("%v", out)
		}
	}
	if out, err := s.do(t, v.at, "ada", "POST", paths[2], key, args{"wait_seconds": 60}); err != nil || text(out, "transaction", "state") != "applied" {
		t.Errorf("%v, %v", out, err)
	}
	s.idle(t)
	v.stop(t)
	s.sound(t)
}
