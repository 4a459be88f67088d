package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/oklog/ulid/v2"

	"roundtable/internal/blob"
)

// TestKilledResolving: a process dies at each point of keeping what a person
// decided to keep. The versions are kept once, and the history names them,
// also where they were kept before the death and nothing said so.
func TestKilledResolving(t *testing.T) {
	for _, name := range []string{"intent", "queued", "leased", "report", "reported", "close", "closed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !resolvedAfter(t, "resolve:"+name) {
				t.Error("a resolving does not come there")
			}
		})
	}
	t.Run("steps", func(t *testing.T) {
		stride, n := 4, 1
		if long() {
			stride = 1
		}
		for resolvedAfter(t, fmt.Sprint("resolve:step:", n)) {
			n += stride
		}
		if n < 4 {
			t.Errorf("a resolving has fewer than %d steps", n)
		}
	})
}

const theirs = "written by somebody who still had it open\n"

// resolvedAfter resolves with a process that dies at point, and says whether it
// came there.
func resolvedAfter(t *testing.T, point string) bool {
	t.Helper()
	s := found(t, func(root string) { write(t, root, "a.txt", "one\ntwo\nthree\n", 0o644) })
	path := s.here("/transactions/" + s.waiting(t) + "/resolve")
	v := serving(t, s.data, failpointVar+"="+point)
	s.idle(t) // the apply is tidied up, as far as it can be
	key, why := ulid.Make().String(), args{"reason": "theirs may go on", "wait_seconds": 60}
	_, err := s.do(t, v.at, "ada", "POST", path, key, why)
	came := err != nil
	if came {
		v.dead(t)
	} else {
		came = v.dies(t)
	}
	v = serving(t, s.data)
	out, err := s.do(t, v.at, "ada", "POST", path, key, why)
	if err != nil {
		t.Fatalf("%s: %v: %s", point, err, v.said())
	}
	x, _ := out["transaction"].(map[string]any)
	resolution, _ := x["resolution"].(map[string]any)
	kept := list(resolution, "kept")
	if len(kept) != 1 || text(kept[0], "path") != "a.txt" {
		t.Fatalf("%s: %v", point, out)
	}
	s.idle(t)
	for _, e := range []string{"resolve_requested", "resolved"} {
		if all := list(s.must(t, v.at, "ada", "GET", s.here("/events?type=transaction."+e), nil), "events"); len(all) != 1 {
			t.Errorf("%s: %d events transaction.%s", point, len(all), e)
		}
	}
	s.remembered(t, v.at)
	v.stop(t)
	s.sound(t)
	s.holds(t, text(kept[0], "sha256"), "one\ntwo\nthree\n"+theirs)
	return came
}

// waiting leaves a transaction that is applied, and for which somebody has
// written into the file that it had replaced. No process serves the site then.
func (s *site) waiting(t *testing.T) (transaction string) {
	t.Helper()
	v := serving(t, s.data, failpointVar+"=apply:reported")
	s.people(t, v.at, "coder")
	p := s.appliable(t, v.at, diffA)
	if _, err := s.do(t, v.at, "ada", "POST", s.here("/proposals/"+p+"/apply"), ulid.Make().String(), args{}); err == nil {
		t.Fatal("not killed")
	}
	v.dead(t)
	left, err := filepath.Glob(filepath.Join(s.root, ".roundtable", "tx", "TX-*.1", "000000"))
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	f, err := os.OpenFile(left[0], os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(theirs)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	return filepath.Base(filepath.Dir(left[0]))[:len("TX-")+26]
}

// holds checks that the store of a data folder that no server has holds text.
func (s *site) holds(t *testing.T, digest, text string) {
	t.Helper()
	blobs, err := blob.Open(filepath.Join(s.data, "blobs"), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	if got, err := blobs.Get(t.Context(), digest); err != nil || string(got) != text {
		t.Errorf("kept %q, %v", got, err)
	}
}
