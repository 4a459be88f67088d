package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

var crashSeed = flag.Uint64("crash.seed", 0, "seed of TestKilledUnderLoad; 0 takes ROUNDTABLE_CRASH_SEED, or a new one")

func seed(t *testing.T) uint64 {
	t.Helper()
	n := *crashSeed
	if v := os.Getenv("ROUNDTABLE_CRASH_SEED"); n == 0 && v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-crash.seed=%d", n)
	return n
}

// workers are the authors of the load; each has a file of its own.
const workers = 4

func worker(i int) string { return fmt.Sprint("coder-", i) }

// TestKilledUnderLoad: several clients claim, propose, vote, test and apply,
// and again and again the process is killed at any moment. Nothing that was
// answered is lost, every file is as the applied transactions left it, and
// the end is the same as if nobody had died.
func TestKilledUnderLoad(t *testing.T) {
	rounds := 5
	if long() {
		rounds = 30
	}
	rng := rand.New(rand.NewPCG(seed(t), 1))
	l := newLoad(t)
	for round := range rounds {
		s := serving(t, l.data)
		l.remembered(t, s.at)
		l.acks = nil // they have outlived one death; the rest of the rounds is for new ones
		l.round(t, s, time.Duration(rng.IntN(1200)+50)*time.Millisecond, rng.Uint64())
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	s := serving(t, l.data)
	l.remembered(t, s.at)
	l.idle(t)
	l.head(t, s.at)
	l.consistent(t, s.at)
	s.stop(t)
	l.sound(t)
	t.Logf("%d rounds, %d writes answered, %d transactions applied", rounds, l.answers.Load(), l.applied(t))
}

// A load is a site whose files hold a counter each.
type load struct {
	*site
	answers atomic.Int64
}

func newLoad(t *testing.T) *load {
	t.Helper()
	l := &load{site: found(t, func(root string) {
		for i := range workers {
			write(t, root, counter(i), "0\n", 0o644)
			write(t, root, copied(i), "0\n", 0o644)
		}
	})}
	s := serving(t, l.data)
	var names []string
	for i := range workers {
		names = append(names, worker(i))
	}
	l.people(t, s.at, names...)
	s.stop(t)
	return l
}

// A worker's proposals change two files alike: a tree in which they differ is
// half applied.
func counter(i int) string { return fmt.Sprintf("counters/%d.txt", i) }

func copied(i int) string { return fmt.Sprintf("copies/%d.txt", i) }

// round lets the clients work until the process has been killed.
func (l *load) round(t *testing.T, s *server, after time.Duration, seed uint64) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for {
				if err := l.change(t, s.at, i, rng); err != nil {
					if !gone(err) {
						t.Errorf("%s: %v", worker(i), err)
					}
					return
				}
			}
		})
	}
	select {
	case <-time.After(after): // the moment of death, not a wait for something
	case <-s.done:
		t.Errorf("ended by itself: %s", s.said())
	}
	s.kill(t)
	wg.Wait()
}

// gone says whether the error is that of a server that was killed.
func gone(err error) bool {
	_, transport := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	return transport || network || strings.Contains(err.Error(), "EOF")
}

// change takes one change of worker i's files from the claim to its end.
func (l *load) change(t *testing.T, at string, i int, rng *rand.Rand) error {
	now, err := os.ReadFile(filepath.Join(l.root, counter(i)))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(now)))
	if err != nil {
		return err
	}
	patch := ""
	for _, f := range []string{counter(i), copied(i)} {
		patch += fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%[2]d\n+%[3]d\n", f, n, n+1)
		if _, err := l.post(t, at, worker(i), "/claims", args{"resource_id": "file:" + f, "claim_type": "write"}, "claim_conflict"); err != nil {
			return err
		}
	}
	in := args{"title": fmt.Sprint("count to ", n+1), "summary_md": "s", "patch": patch}
	if rng.IntN(6) == 0 {
		in["expected_tests"] = []string{"git hash-object " + counter(i)}
	}
	p, err := l.post(t, at, worker(i), "/proposals", in)
	if err != nil {
		return err
	}
	id := "/proposals/" + text(p, "proposal", "proposal_id")
	if rng.IntN(6) == 0 {
		_, err := l.post(t, at, worker(i), id+"/withdraw", args{})
		return err
	}
	if _, err := l.post(t, at, worker(i), id+"/request-review", args{}); err != nil {
		return err
	}
	if _, err := l.post(t, at, "critic", id+"/votes", args{"vote": "approve", "reason_md": "counted"}); err != nil {
		return err
	}
	_, err = l.post(t, at, "ada", id+"/apply", args{"wait_seconds": min(rng.IntN(5), 1) * 5}, "gates_not_met", "conflict")
	return err
}

// post writes; a refusal with one of the codes is as good as an answer.
func (l *load) post(t *testing.T, at, who, path string, in args, codes ...string) (map[string]any, error) {
	out, err := l.do(t, at, who, "POST", l.here(path), ulid.Make().String(), in)
	if p, ok := errors.AsType[*problem](err); ok {
		for _, c := range codes {
			if p.Code == c {
				return out, nil
			}
		}
	}
	if err == nil {
		l.answers.Add(1)
	}
	return out, err
}

// consistent compares the files with the transactions that were applied: no
// pair differs, and each counter was moved once by each of them.
func (l *load) consistent(t *testing.T, at string) {
	t.Helper()
	sum := 0
	for i := range workers {
		a, err := os.ReadFile(filepath.Join(l.root, counter(i)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(l.root, copied(i)))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("worker %d: half applied: %q and %q", i, a, b)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(a)))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if n := l.applied(t); n != sum {
		t.Errorf("%d transactions are applied, and the counters stand at %d in all", n, sum)
	}
}

// applied counts the transactions that the views call applied.
func (l *load) applied(t *testing.T) int {
	t.Helper()
	return len(l.rows(t, "views.db", "SELECT id FROM transactions WHERE state = 'applied'"))
}
