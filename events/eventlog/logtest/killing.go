package logtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/events/eventlog"
)

// childEnv is set, to the log's folder, in a process that is to be killed.
const childEnv = "ROUNDTABLE_LOGTEST_DIR"

// testKilled: a process that is killed while it writes leaves a whole log, in
// which everything is that it was told. (What a kill cannot show is a missing
// fsync: the page cache survives it.)
func testKilled(t *testing.T, e *env) {
	rounds := 5
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds = 100
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	told := map[string]bool{}
	for range rounds {
		for _, key := range killOne(t, e.dir, 1+rnd.IntN(60)) {
			told[key] = true
		}
		e.reopen(t)
		inLog := map[string]int{}
		for _, r := range e.all(t) {
			inLog[r.Command]++
		}
		for key := range told {
			o, known, err := e.Outcome(t.Context(), "PR-1", key)
			if !known || err != nil || inLog[key] != 2 {
				t.Errorf("%s was acknowledged: outcome %v (%+v, %v), %d events", key, known, o, err, inLog[key])
			}
		}
		for key, n := range inLog {
			if _, known, err := e.Outcome(t.Context(), "PR-1", key); !known || err != nil || n != 2 {
				t.Errorf("%s is half there: %d events, outcome %v, %v", key, n, known, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e.reopen(t)
	if len(told) < rounds {
		t.Errorf("only %d commands were acknowledged", len(told))
	}
}

// killOne runs a child on the log in dir, kills it after it has acknowledged n
// commands, and returns what it acknowledged.
func killOne(t *testing.T, dir string, n int) (told []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	root, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+root+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if key, ok := strings.CutPrefix(lines.Text(), "ack "); ok {
			told = append(told, key)
		}
		if len(told) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("read from the child: %v", err)
	}
	if err := cmd.Wait(); err == nil || len(told) < n {
		t.Errorf("the child was to be killed after %d commands, acknowledged %d and ended with %v", n, len(told), err)
	}
	return told
}

// child appends from 8 goroutines and acknowledges each command on standard
// output, until it is killed.
func child(t *testing.T, open Open, dir string) {
	s, err := open(context.Background(), dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	eachAtOnce(8, func(w int) {
		for i := 0; ; i++ {
			key := fmt.Sprintf("%d.%d.%d", os.Getpid(), w, i)
			if _, err := s.Append(context.Background(), batch(key, key, 0, 2), nil); err != nil {
				if !errors.Is(err, eventlog.ErrClosed) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			if _, err := fmt.Printf("ack %s\n", key); err != nil {
				os.Exit(1) // nobody listens any more
			}
			mu.Unlock()
		}
	})
}
