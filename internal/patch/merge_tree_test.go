package patch_test

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// forks gives the three trees path by path.
func forks(t testing.TB, base, ours, theirs map[string]file) (all []patch.Fork) {
	t.Helper()
	paths := map[string]bool{}
	for _, tree := range []map[string]file{base, ours, theirs} {
		for p := range tree {
			paths[p] = true
		}
	}
	hold := func(tree map[string]file, p string) patch.Held {
		h, err := patch.Hold(mapTree(tree), p, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		all = append(all, patch.Fork{Path: p, Base: hold(base, p), Ours: hold(ours, p), Theirs: hold(theirs, p)})
	}
	return all
}

// with gives the tree with the images in it; false if it cannot stand.
func with(tree map[string]file, images []patch.Image) (map[string]file, bool) {
	out := maps.Clone(tree)
	for _, m := range images {
		delete(out, m.Path)
		if m.After.Kind != patch.Absent {
			out[m.Path] = file{m.After.Mode, string(m.New)}
		}
	}
	paths := slices.Sorted(maps.Keys(out))
	for _, p := range paths {
		for _, q := range paths {
			if strings.HasPrefix(q, p+"/") {
				return out, false
			}
		}
	}
	return out, true
}

// mergeTree merges three trees with git; "" is a conflict.
func (r repo) mergeTree(base, ours, theirs string) string {
	r.t.Helper()
	commit := func(tree string, parents ...string) string {
		return strings.TrimSpace(string(r.must([]byte("x\n"), append([]string{"commit-tree", tree}, parents...)...)))
	}
	b := commit(base)
	out, err := r.git(nil, "merge-tree", "--write-tree", commit(ours, "-p", b), commit(theirs, "-p", b))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return ""
	}
	if err != nil {
		r.t.Fatal(err)
	}
	tree, _, _ := strings.Cut(string(out), "\n")
	return tree
}

// branch gives an edited copy of the tree that takes files away or adds some
// and never both, so that nothing looks like a rename.
func (f forest) branch(old map[string]file) map[string]file {
	t := maps.Clone(old)
	adds := f.IntN(2) == 0
	for range 1 + f.IntN(5) {
		paths := slices.Sorted(maps.Keys(t))
		if q := f.path(); adds && (len(paths) == 0 || f.IntN(4) == 0) && free(t, q) {
			t[q] = f.file()
			continue
		}
		if len(paths) == 0 {
			continue
		}
		p := paths[f.IntN(len(paths))]
		x := t[p]
		switch n := f.IntN(8); {
		case n == 0 && !adds:
			delete(t, p)
		case n == 1:
			t[p] = f.file()
		case x.mode == "120000":
		case n == 2:
			t[p] = file{f.pick("100644", "100755"), x.data}
		default:
			t[p] = file{x.mode, f.edit(x.data)}
		}
	}
	return t
}

// TestMergeTreesGit: trees are merged as git merge-tree does, to the same tree
// or none, but for texts of repeated lines that Git's other
// way of comparing pairs otherwise.
func TestMergeTreesGit(t *testing.T) {
	t.Parallel()
	rounds, seed := roundsFrom(30, 2_000, 1)
	r := newRepo(t)
	clean, refused, other := 0, 0, 0
	for i := range rounds {
		f := newForest(seed + uint64(i))
		base := f.tree()
		ours, theirs := f.branch(base), f.branch(base)
		m := patch.MergeTrees(forks(t, base, ours, theirs), nil)
		got, stands := with(ours, m.Images)
		id := r.mergeTree(r.store(base), r.store(ours), r.store(theirs))
		r.must(nil, "read-tree", "--empty")
		if id != "" {
			r.must(nil, "read-tree", id)
		}
		lines := slices.ContainsFunc(m.Conflicts, func(c patch.Conflict) bool { return c.Reason == patch.ReasonLines })
		switch merged := m.Conflicts == nil && stands; {
		case merged && id != "" && listing(got) == r.index():
			clean++
		case !merged && id == "":
			refused++
		case lines || merged && len(m.Merged) > 0:
			other++
		default:
			t.Errorf("seed %d: merged %t, %v; git gives %q\nours\n%s\ngit\n%s", seed+uint64(i), merged, m.Conflicts, id, listing(got), r.index())
		}
	}
	t.Logf("%d rounds: %d clean and %d refused alike, %d texts otherwise", rounds, clean, refused, other)
	if other*50 > rounds {
		t.Errorf("%d of %d rounds have other texts than git's", other, rounds)
	}
}

// TestMergeTrees: what becomes of one path.
func TestMergeTrees(t *testing.T) {
	t.Parallel()
	text := func(s string) file { return file{"100644", s} }
	const abc, aBc, abcd = "a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "a\nb\nc\nd\nE\n"
	none := map[string]file{}
	at := func(x file) map[string]file { return map[string]file{"p": x} }
	for name, x := range map[string]struct {
		base, ours, theirs map[string]file
		renames            map[string]string
		want               string // the tree, or path and reason of the conflicts
	}{
		"ours left it":              {at(text(abc)), at(text(abc)), at(text(aBc)), nil, listing(at(text(aBc)))},
		"theirs left it":            {at(text(abc)), at(text(aBc)), at(text(abc)), nil, listing(at(text(aBc)))},
		"alike":                     {at(text(abc)), at(text(aBc)), at(text(aBc)), nil, listing(at(text(aBc)))},
		"other lines":               {at(text(abc)), at(text(aBc)), at(text(abcd)), nil, listing(at(text("a\nB\nc\nd\nE\n")))},
		"mode here, text there":     {at(text(abc)), at(file{"100755", abc}), at(text(aBc)), nil, listing(at(file{"100755", aBc}))},
		"mode and text of both":     {at(text(abc)), at(file{"100755", aBc}), at(text(abcd)), nil, listing(at(file{"100755", "a\nB\nc\nd\nE\n"}))},
		"the same lines":            {at(text(abc)), at(text(aBc)), at(text("a\nbb\nc\nd\ne\n")), nil, "p lines"},
		"binary":                    {at(text("\x00a")), at(text("\x00b")), at(text("\x00c")), nil, "p binary"},
		"one binary":                {at(text(abc)), at(text(aBc + "\x00")), at(text(abcd)), nil, "p binary"},
		"binary, mode of one":       {at(text("\x00a")), at(file{"100755", "\x00a"}), at(text("\x00c")), nil, listing(at(file{"100755", "\x00c"}))},
		"links":                     {at(file{"120000", "a"}), at(file{"120000", "b"}), at(file{"120000", "c"}), nil, "p symlink"},
		"link and file":             {at(text(abc)), at(file{"120000", "b"}), at(text(aBc)), nil, "p type"},
		"deleted by theirs":         {at(text(abc)), at(text(aBc)), none, nil, "p deleted"},
		"deleted by ours":           {at(text(abc)), none, at(text(aBc)), nil, "p deleted"},
		"deleted by both":           {at(text(abc)), none, none, nil, ""},
		"added by both":             {none, at(text(abc)), at(text(aBc)), nil, "p added"},
		"added with other modes":    {none, at(text(abc)), at(file{"100755", abc}), nil, "p mode"},
		"moved, left here":          {at(text(abc)), at(text(abc)), map[string]file{"q": text(aBc)}, map[string]string{"p": "q"}, listing(map[string]file{"q": text(aBc)})},
		"moved, and work here":      {at(text(abc)), at(text(aBc)), map[string]file{"q": text(abcd)}, map[string]string{"p": "q"}, listing(map[string]file{"q": text("a\nB\nc\nd\nE\n")})},
		"moved, same lines":         {at(text(abc)), at(text(aBc)), map[string]file{"q": text("a\nbb\nc\nd\ne\n")}, map[string]string{"p": "q"}, "p lines"},
		"moved, taken away here":    {at(text(abc)), none, map[string]file{"q": text(aBc)}, map[string]string{"p": "q"}, "p deleted"},
		"moved, and it is there":    {at(text(abc)), map[string]file{"p": text(aBc), "q": text("x")}, map[string]file{"q": text(abc)}, map[string]string{"p": "q"}, "q exists"},
		"moved, done already":       {at(text(abc)), map[string]file{"q": text(aBc)}, map[string]file{"q": text(aBc)}, map[string]string{"p": "q"}, listing(map[string]file{"q": text(aBc)})},
		"moved, and another there":  {at(text(abc)), at(text(abc)), map[string]file{"p": text("new"), "q": text(aBc)}, map[string]string{"p": "q"}, listing(map[string]file{"p": text("new"), "q": text(aBc)})},
		"moved without its name":    {at(text(abc)), at(text(aBc)), map[string]file{"q": text(abc)}, nil, "p deleted"},
		"moved, mode changed there": {at(text(abc)), at(file{"100755", abc}), map[string]file{"q": text(aBc)}, map[string]string{"p": "q"}, listing(map[string]file{"q": {"100755", aBc}})},
	} {
		m := patch.MergeTrees(forks(t, x.base, x.ours, x.theirs), x.renames)
		var got string
		for _, c := range m.Conflicts {
			got = c.Path + " " + string(c.Reason)
			if (c.Reason == patch.ReasonLines) != (len(c.Clashes) > 0) || c.Detail == "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if m.Conflicts == nil {
			tree, _ := with(x.ours, m.Images)
			got = listing(tree)
		}
		if got != x.want {
			t.Errorf("%s: %s\nwant %s", name, got, x.want)
		}
		data, err := patch.Format(m.Images, false)
		if err != nil || (len(data) == 0) != (len(m.Images) == 0) {
			t.Errorf("%s: %v", name, fmt.Sprint(err, len(data)))
		}
	}
}
