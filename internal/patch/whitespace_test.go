package patch_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// blanks makes a text in which much is wrong with the blanks.
func (f forest) blanks() string {
	var b strings.Builder
	if f.IntN(20) == 0 {
		b.WriteString(strings.Repeat("x", 7990) + "\n" + f.pick("", "123456") + "\x00\n") // on either side of where git stops looking
	}
	for range f.IntN(24) {
		b.WriteString(f.pick("", " ", "\t", "  \tx", "\t x", " \t", "x ", "x\t ", "x\r", "\r", " \r", "\t \t x \t", "\v", "\f x\v", "\u00a0", "  x\t y", "   \t",
			"<<<<<<< HEAD", "<<<<<<<", "=======", "======= ", "=======x", "======", "========", ">>>>>>> b", ">>>>>>>\tb", "||||||| base", "|||||||\r", "<=<=<=<= ", " =======",
			"one", "two", "three", "{", "}", "return", fmt.Sprint(f.IntN(5))) + "\n")
	}
	return strings.TrimSuffix(b.String()+f.pick("", "", "\n", "\n\n", " \n\t\n"), f.pick("", "", "", "\n"))
}

// blanked changes some lines of a text.
func (f forest) blanked(data string) string {
	lines := strings.SplitAfter(data, "\n")
	for range f.IntN(6) {
		at := f.IntN(len(lines) + 1)
		lines = slices.Insert(lines, at, strings.SplitAfter(f.blanks(), "\n")[0])
		if at = f.IntN(len(lines)); f.IntN(2) == 0 {
			lines = slices.Delete(lines, at, at+1)
		}
	}
	return strings.Join(lines, "")
}

// TestFlaws: git diff --check finds the same, in the same lines and words.
func TestFlaws(t *testing.T) {
	r := newRepo(t)
	rounds, seed := roundsFrom(12, 300, 4100)
	all := 0
	for n := range rounds {
		f := newForest(seed + uint64(n))
		old, now := map[string]file{}, map[string]file{}
		for i := range 60 {
			p, mode := fmt.Sprintf("%02d", i), f.pick("100644", "100644", "100755")
			if f.IntN(8) > 0 {
				old[p] = file{mode, f.blanks()}
			}
			if f.IntN(8) > 0 {
				now[p] = file{mode, f.blanked(old[p].data)}
			}
		}
		_, ids := r.planted([]map[string]file{old, now})
		before, after := mapTree(old), mapTree(now)
		var images []patch.Image
		for _, p := range slices.Sorted(maps.Keys(now)) {
			m := patch.Image{Path: p, Old: []byte(old[p].data), New: []byte(now[p].data)}
			m.Before, _ = before.Stat(p)
			m.After, _ = after.Stat(p)
			images = append(images, m)
		}
		var got []string
		found, sum := patch.Flaws(images, 1<<20)
		for _, x := range found {
			got = append(got, fmt.Sprintf("%s:%d: %s", x.Path, x.Line, x.What))
		}
		want := r.complaints(ids[0], ids[1])
		if !slices.Equal(got, want) {
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("seed %d, number %d: %q, and git says %q", seed+uint64(n), i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
				}
			}
		}
		if few, again := patch.Flaws(images, 3); len(few) != min(3, sum) || again != sum || sum != len(got) {
			t.Errorf("a bound of 3 gives %d of %d, and without one %d of %d", len(few), again, len(got), sum)
		}
		all += sum
	}
	t.Logf("%d rounds, %d flaws", rounds, all)
	if all < 20*rounds {
		t.Errorf("only %d flaws in %d rounds: the texts are too good", all, rounds)
	}
}

// complaints are what git diff --check says of two trees, without the lines
// themselves.
func (r repo) complaints(a, b string) (out []string) {
	r.t.Helper()
	said, err := r.git(nil, "diff", "--check", "--no-renames", a, b)
	if err != nil && !strings.Contains(err.Error(), "exit status 2") {
		r.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(said), "\n") {
		if line != "" && line[0] != '+' {
			out = append(out, strings.TrimSuffix(line, "."))
		}
	}
	return out
}
