package patch_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

var number = regexp.MustCompile(`[0-9]+`)

// mutate changes a patch as transports, editors and models do: a line lost,
// doubled, moved or changed, a number wrong, a blank gone.
func (f forest) mutate(data string) string {
	lines := strings.SplitAfter(data, "\n")
	lines = lines[:len(lines)-1]
	for range 1 + f.IntN(2) {
		if len(lines) == 0 {
			break
		}
		i := f.IntN(len(lines))
		switch f.IntN(7) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines = slices.Insert(lines, i, lines[i])
		case 2:
			j := f.IntN(len(lines))
			lines[i], lines[j] = lines[j], lines[i]
		case 3:
			lines[i] = f.pick("+", "-", " ", "") + f.line() + "\n"
		case 4, 5: // numbers stand in hunk headers above all
			for k := range lines {
				if k := (i + k) % len(lines); strings.HasPrefix(lines[k], "@@ ") {
					hits := number.FindAllStringIndex(lines[k], -1)
					h := hits[f.IntN(min(len(hits), 4))]
					lines[k] = lines[k][:h[0]] + fmt.Sprint(f.IntN(12)) + lines[k][h[1]:]
					break
				}
			}
		case 6:
			lines[i] = strings.TrimLeft(lines[i], " ")
		}
	}
	return strings.Join(lines, "")
}

// TestGitMutated: where we still take a damaged patch, git gives the same tree
// or takes none of it. So what we take is never something else than what it
// says; that we refuse more is intended.
func TestGitMutated(t *testing.T) {
	t.Parallel()
	rounds, seed := roundsFrom(30, 5000, 500)
	r := newRepo(t)
	taken, alike := 0, 0
	for i := range rounds {
		f := newForest(seed + uint64(i))
		old := f.tree()
		new := f.change(old)
		a, b := r.store(old), r.store(new)
		if a == b {
			continue
		}
		good := string(r.must(nil, "diff", "--binary", a, b))
		for range 10 {
			bad := f.mutate(good)
			tree := mapTree(old)
			res, err := apply([]byte(bad), patch.Options{IgnoreOID: true}, tree)
			if err != nil || bad == good {
				continue
			}
			taken++
			if slices.ContainsFunc(res.Notes, func(n patch.Note) bool { return n.Kind == patch.NoteImpliedDelete || n.Kind == patch.NoteImpliedNew }) {
				continue // git makes a file dev/null
			}
			if r.applyTo(a, []byte(bad)) != nil {
				continue
			}
			tree.Apply(res)
			if got, want := listing(files(tree)), r.index(); got != want {
				t.Errorf("seed %d: we have\n%sgit has\n%sfrom %s\n%s", seed+uint64(i), got, want, listing(old), bad)
				return
			}
			alike++
		}
	}
	t.Logf("%d rounds: %d damaged patches taken, %d alike by git, the others refused by git", rounds, taken, alike)
	if alike < rounds/4 {
		t.Errorf("only %d of %d rounds compared anything", alike, rounds)
	}
}
