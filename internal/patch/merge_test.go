package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

// mergeFile merges with git, as git merge-file does or with the base in its
// conflicts.
func (r repo) mergeFile(base, ours, theirs []byte, diff3 bool) (out []byte, clean bool) {
	r.t.Helper()
	names := []string{"ours", "base", "theirs"}
	for i, data := range [][]byte{ours, base, theirs} {
		names[i] = filepath.Join(r.dir, names[i])
		if err := os.WriteFile(names[i], data, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	args := []string{"merge-file", "-p", "-q", "-L", "o", "-L", "b", "-L", "t"}
	if diff3 {
		args = append(args, "--diff3")
	}
	out, err := r.git(nil, append(args, names...)...)
	exit, failed := errors.AsType[*exec.ExitError](err)
	if failed && (exit.ExitCode() < 0 || exit.ExitCode() > 127) || err != nil && !failed {
		r.t.Fatal(err)
	}
	return out, err == nil
}

// conflicted spells clashes as git writes them, each on its own.
func conflicted(clashes []patch.Clash) string {
	var b strings.Builder
	side := func(mark string, e patch.Excerpt) {
		b.WriteString(mark + "\n")
		b.Write(e.Text)
		if n := len(e.Text); n > 0 && e.Text[n-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	for _, c := range clashes {
		side("<<<<<<< o", c.Ours)
		side("||||||| b", c.Base)
		side("=======", c.Theirs)
		b.WriteString(">>>>>>> t\n")
	}
	return b.String()
}

// conflictsOf keeps what stands between the marks of conflicts, but for those
// whose sides look equal: merge-file without the base takes them, and sides
// that differ in the last newline only do not show it.
func conflictsOf(out []byte) string {
	var b strings.Builder
	in := false
	var one []string
	for l := range strings.Lines(strings.ReplaceAll(string(out), "\r\n", "\n")) {
		in = in || l == "<<<<<<< o\n"
		if in {
			one = append(one, l)
		}
		if l == ">>>>>>> t\n" {
			i, j := slices.Index(one, "||||||| b\n"), slices.Index(one, "=======\n")
			if !slices.Equal(one[1:i], one[j+1:len(one)-1]) {
				b.WriteString(strings.Join(one, ""))
			}
			in, one = false, nil
		}
	}
	return b.String()
}

// A draft is a file that two people edit at once.
type draft struct{ base, ours, theirs []byte }

// draft makes one of lines that are all different, or of a few that repeat.
func (f forest) draft(repeats bool) draft {
	word := func() string { return f.pick("a", "b", "c", "", "}") + "\n" }
	if !repeats {
		fresh := 0
		word = func() string { fresh++; return fmt.Sprintf("line %d %d\n", fresh, f.IntN(1000)) }
	}
	var base []string
	for range f.IntN(25) {
		base = append(base, word())
	}
	both := f.edits(len(base), word)
	mine, yours := f.edits(len(base), word), f.edits(len(base), word)
	if f.IntN(3) == 0 {
		mine, yours = append(mine, both...), append(yours, both...)
	}
	d := draft{[]byte(strings.Join(base, "")), edited(base, mine), edited(base, yours)}
	for _, p := range []*[]byte{&d.base, &d.ours, &d.theirs} {
		if f.IntN(12) == 0 {
			*p = bytes.TrimSuffix(*p, []byte("\n"))
		}
	}
	if f.IntN(10) == 0 {
		for _, p := range []*[]byte{&d.base, &d.ours, &d.theirs} {
			*p = bytes.ReplaceAll(*p, []byte("\n"), []byte("\r\n"))
		}
	}
	return d
}

// A swap replaces n lines from one on.
type swap struct {
	at, n int
	by    []string
}

func (f forest) edits(n int, word func() string) (all []swap) {
	for range f.IntN(4) {
		s := swap{at: f.IntN(n + 1)}
		s.n = min(f.IntN(3), n-s.at)
		for range f.IntN(3) {
			s.by = append(s.by, word())
		}
		all = append(all, s)
	}
	return all
}

// edited makes the swaps from the end on; of those that overlap the first counts.
func edited(base []string, all []swap) []byte {
	slices.SortStableFunc(all, func(a, b swap) int { return b.at - a.at })
	out, until := slices.Clone(base), len(base)
	for _, s := range all {
		if s.at+s.n <= until {
			out, until = slices.Replace(out, s.at, s.at+s.n, s.by...), s.at-1
		}
	}
	return []byte(strings.Join(out, ""))
}

// TestMergeGit: where lines do not repeat, git merge-file merges the same
// drafts to the same bytes and finds the same conflicts. Where they do, two
// diffs may be equally short, and Git may pair the lines in another way: that
// is counted, and stays rare.
func TestMergeGit(t *testing.T) {
	t.Parallel()
	rounds, seed := roundsFrom(400, 20_000, 1)
	r := newRepo(t)
	clean, clashed, other := 0, 0, map[string]int{}
	for i := range rounds {
		f := newForest(seed + uint64(i))
		repeats := i%2 == 1
		d := f.draft(repeats)
		got, clashes := patch.MergeLines(d.base, d.ours, d.theirs)
		want, ok := r.mergeFile(d.base, d.ours, d.theirs, false)
		what := ""
		switch {
		case ok != (clashes == nil):
			what = "verdict"
		case ok && !bytes.Equal(got, want):
			what = "bytes"
		case ok:
			clean++
		default:
			clashed++
			want, _ = r.mergeFile(d.base, d.ours, d.theirs, true)
			if conflictsOf(want) != conflictsOf([]byte(conflicted(clashes))) {
				what = "conflicts"
			}
		}
		if what == "" {
			continue
		}
		other[what]++
		if !repeats {
			t.Errorf("seed %d: other %s\nbase %q\nours %q\ntheirs %q\nours gives %q %s\ngit gives %t %s", seed+uint64(i), what, d.base, d.ours, d.theirs, got, conflicted(clashes), ok, want)
		}
	}
	t.Logf("%d rounds: %d clean and %d in conflict alike; otherwise %v", rounds, clean, clashed, other)
	if n := other["verdict"] + other["bytes"] + other["conflicts"]; n*50 > rounds {
		t.Errorf("%d of %d rounds with other than git's result", n, rounds)
	}
}

// TestMergeKeeps: a clean merge has the lines that both sides have and those
// that one side added, and no others, in the order of each side; it is the same
// with the sides exchanged; and what only one side changed is that side's.
func TestMergeKeeps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newForest(rapid.Uint64().Draw(t, "seed")).draft(false)
		got, clashes := patch.MergeLines(d.base, d.ours, d.theirs)
		back, turned := patch.MergeLines(d.base, d.theirs, d.ours)
		if !bytes.Equal(got, back) || len(clashes) != len(turned) {
			t.Fatalf("exchanged: %q and %q, %d and %d clashes", got, back, len(clashes), len(turned))
		}
		for _, side := range [][]byte{d.ours, d.theirs} {
			for name, x := range map[string][3][]byte{"only ours": {d.base, side, d.base}, "both": {d.base, side, side}, "only theirs": {d.base, d.base, side}} {
				if all, c := patch.MergeLines(x[0], x[1], x[2]); c != nil || !bytes.Equal(all, side) {
					t.Fatalf("%s: %q is not %q", name, all, side)
				}
			}
		}
		if clashes != nil {
			return
		}
		base, ours, theirs := lineSet(d.base), lineSet(d.ours), lineSet(d.theirs)
		merged := slices.Collect(strings.Lines(string(got)))
		in := lineSet(got)
		for _, from := range []map[string]bool{base, ours, theirs, in} {
			for l := range from {
				if want := ours[l] && theirs[l] || (ours[l] || theirs[l]) && !base[l]; in[l] != want {
					t.Fatalf("line %q: in the merge %t, want %t\nbase %q\nours %q\ntheirs %q\nmerge %q", l, in[l], want, d.base, d.ours, d.theirs, got)
				}
			}
		}
		for name, side := range map[string][]byte{"ours": d.ours, "theirs": d.theirs} {
			has := lineSet(side)
			var a, b []string
			for _, l := range merged {
				if has[l] {
					a = append(a, l)
				}
			}
			for l := range strings.Lines(string(side)) {
				if in[l] {
					b = append(b, l)
				}
			}
			if !slices.Equal(a, b) {
				t.Fatalf("the lines of %s stand in another order: %q, %q", name, a, b)
			}
		}
	})
}

func lineSet(data []byte) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(string(data)) {
		set[l] = true
	}
	return set
}

// TestMergeBound: large files, equal lines and lines that are all different
// are merged in bounded time and memory. Without the bound on steps those in
// other order would take minutes.
func TestMergeBound(t *testing.T) {
	many := func(n int, line func(i int) string) []byte {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return []byte(b.String())
	}
	equal := func(int) string { return "x\n" }
	numbered := func(i int) string { return fmt.Sprintf("%d\n", i) }
	for name, x := range map[string][3][]byte{
		"equal lines":     {many(60_000, equal), many(50_000, equal), many(70_000, equal)},
		"equal and once":  {many(60_000, equal), append([]byte("a\n"), many(60_000, equal)...), append(many(60_000, equal), "b\n"...)},
		"numbered":        {many(60_000, numbered), append([]byte("a\n"), many(60_000, numbered)...), append(many(60_000, numbered), "b\n"...)},
		"nothing alike":   {many(60_000, numbered), many(60_000, func(i int) string { return fmt.Sprintf("a%d\n", i) }), many(60_000, func(i int) string { return fmt.Sprintf("b%d\n", i) })},
		"other order":     {many(200_000, numbered), many(200_000, func(i int) string { return numbered(i * 7919 % 200_000) }), many(200_000, func(i int) string { return numbered(199_999 - i) })},
		"a few, repeated": {many(30_000, func(i int) string { return numbered(i % 7) }), many(30_000, func(i int) string { return numbered(i % 5) }), many(30_000, func(i int) string { return numbered(i % 3) })},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		patch.MergeLines(x[0], x[1], x[2])
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		size := len(x[0]) + len(x[1]) + len(x[2])
		if held := after.TotalAlloc - before.TotalAlloc; took > slower*time.Minute || held > uint64(100*size) {
			t.Errorf("%s: %v, %d bytes for %d", name, took, held, size)
		} else {
			t.Logf("%s: %v, %d bytes for %d", name, took, held, size)
		}
	}
}
