package bench_test

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"roundtable/internal/bench"
)

// TestAppend runs each contender for a moment: they work, and the table names
// them. With ROUNDTABLE_BENCH=1 it measures and prints.
func TestAppend(t *testing.T) {
	s := bench.Settings{Dir: t.TempDir(), Writers: []int{1, 4}, Rounds: 1, Slice: 20 * time.Millisecond, Now: time.Now, Seed: 1}
	if os.Getenv("ROUNDTABLE_BENCH") != "" {
		s.Writers, s.Rounds, s.Slice = []int{1, 4, 16, 64}, 7, 400*time.Millisecond
	}
	var out bytes.Buffer
	results, err := bench.Append(t.Context(), s, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &out)
	if len(results) != len(s.Writers)*6 {
		t.Errorf("%d results", len(results))
	}
	for _, r := range results {
		if r.PerSecond <= 0 || r.Ratio <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Tries < 1 || !strings.Contains(out.String(), r.Contender) {
			t.Errorf("%+v", r)
		}
		if (r.Contender == "raw" || r.Contender == "raw, retries") && r.Ratio != 1 {
			t.Errorf("the measure itself has ratio %v", r.Ratio)
		}
	}
	s.Rounds = 0
	if _, err := bench.Append(t.Context(), s, &out); err == nil {
		t.Error("no rounds, and no error")
	}
}

func TestReplay(t *testing.T) {
	n := int64(2500)
	if text := os.Getenv("ROUNDTABLE_BENCH"); text != "" {
		if n, _ = strconv.ParseInt(text, 10, 64); n < 10_000 {
			n = 1_000_000
		}
	}
	dir := t.TempDir()
	for range 2 { // the second finds the log of the first
		var out bytes.Buffer
		rs, err := bench.Replay(t.Context(), dir, n, time.Now, &out)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("\n%s", &out)
		for _, r := range rs {
			if r.Events != n || r.PerSecond <= 0 || r.Ratio <= 0 {
				t.Errorf("%+v", r)
			}
		}
		if n > 10_000 {
			return
		}
	}
}

// TestPatch runs each contender on small repositories: git and the program
// judge and apply the same patches, and every figure is one.
func TestPatch(t *testing.T) {
	s := bench.PatchSettings{Dir: t.TempDir(), Files: []int{30, 60}, Sizes: []int{1, 5}, Rounds: 1, Seed: 1, Now: time.Now}
	if os.Getenv("ROUNDTABLE_BENCH") != "" {
		s.Files, s.Sizes, s.Rounds = []int{10_000, 100_000}, []int{1, 50, 1000}, 5
	}
	var out, progress bytes.Buffer
	results, err := bench.Patch(t.Context(), s, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &out)
	if len(results) != len(s.Files)*len(s.Sizes)*8 {
		t.Errorf("%d results", len(results))
	}
	for i, r := range results {
		if r.Wall <= 0 || r.CPU <= 0 || r.Check <= 0 || r.Small <= 0 || !strings.Contains(out.String(), r.Contender) {
			t.Errorf("%+v", r)
		}
		if i%8 == 0 && r.Check != 1 || r.Files == s.Files[0] && r.Small != 1 {
			t.Errorf("the measure itself: %+v", r)
		}
	}
	if _, err := bench.Patch(t.Context(), bench.PatchSettings{Dir: t.TempDir()}, &out, &progress); err == nil {
		t.Error("nothing to measure, and no error")
	}
}
