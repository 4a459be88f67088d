package repo_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func TestSnapshotAndChanged(t *testing.T) {
	files := map[string]spec{"f": "100644 f\n", "x": "100755 x\n", "l": "120000 f", "d/e": "100644 e\n"}
	root := gitRepo(t, files)
	w := open(t, root, repo.Options{})
	paths := []string{"f", "x", "l", "d", "d/e", "none", "l/below", ".git/config"}
	b, err := w.Snapshot(ctx(t), paths)
	must(t, err)
	if b.Commit != git(t, root, "rev-parse", "HEAD") || b.ObjectFormat != "sha1" || b.PathsDigest != repo.PathsDigest(b.States) {
		t.Errorf("base %+v", b)
	}
	for path, s := range files {
		if want, _ := stateOf(s); b.States[path] != want {
			t.Errorf("%s is %+v, want %+v", path, b.States[path], want)
		}
	}
	if b.States["none"] != none || b.States["l/below"] != none || b.States["d"].Kind != patch.Dir || b.States[".git/config"].Kind != patch.Special {
		t.Errorf("states %+v", b.States)
	}
	if changed, err := w.Changed(ctx(t), b.States); err != nil || len(changed) > 0 {
		t.Errorf("changed %v %v", changed, err)
	}
	must(t, os.Chmod(filepath.Join(root, "f"), 0o755))
	write(t, root, "none", "100644 now")
	write(t, root, "l", "120000 x")
	must(t, os.RemoveAll(filepath.Join(root, "d")))
	changed, err := w.Changed(ctx(t), b.States)
	must(t, err)
	if !slices.Equal(changed, []string{"d", "d/e", "f", "l", "none"}) {
		t.Errorf("changed %v", changed)
	}
}

func TestHead(t *testing.T) {
	root := gitRepo(t, nil)
	head := git(t, root, "rev-parse", "HEAD")
	w := open(t, root, repo.Options{})
	if got, err := w.Head(ctx(t)); got != head || err != nil {
		t.Errorf("%s %v", got, err)
	}
	for _, rev := range []string{head, head[:12], head[:7]} {
		if got, err := w.ResolveCommit(ctx(t), rev); got != head || err != nil {
			t.Errorf("%s: %s %v", rev, got, err)
		}
	}
	tree := git(t, root, "rev-parse", "HEAD^{tree}")
	for _, rev := range []string{"", "HEAD", "main", "-h", head[:6], strings.Repeat("0", 40), tree, strings.Repeat("a", 65), head + "^"} {
		if got, err := w.ResolveCommit(ctx(t), rev); fault.CodeOf(err) != "unknown_base" {
			t.Errorf("%s: %s %v", rev, got, err)
		}
	}
	unborn := t.TempDir()
	git(t, unborn, "init", "-q")
	for _, dir := range []string{unborn, t.TempDir()} {
		w := open(t, dir, repo.Options{})
		if got, err := w.Head(ctx(t)); got != "" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		if c, err := w.Candidate(ctx(t), []patch.Change{change("a", "", "100644 a")}); err != nil || c.ID == "" {
			t.Errorf("%v %v", c, err)
		}
	}
}

func TestPathsDigest(t *testing.T) {
	state := rapid.Custom(func(t *rapid.T) patch.State {
		return patch.State{Kind: rapid.SampledFrom([]patch.Kind{patch.File, patch.Absent}).Draw(t, "kind"),
			SHA256: rapid.StringN(0, 2, 2).Draw(t, "sha"), Size: rapid.Int64Range(0, 2).Draw(t, "size")}
	})
	states := rapid.MapOfN(rapid.StringMatching("[ab]{1,3}"), state, 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := states.Draw(t, "a"), states.Draw(t, "b")
		if same := repo.PathsDigest(a) == repo.PathsDigest(b); same != maps.Equal(a, b) {
			t.Fatalf("%v and %v: same digest is %v", a, b, same)
		}
	})
}

func TestDigest(t *testing.T) {
	for _, gitted := range []bool{true, false} {
		root := t.TempDir()
		files := map[string]spec{"f": "100644 f\n", "l": "120000 f", "d/e": "100644 e\n", "d/g/h": "100644 h\n", ".gitignore": "100644 *.o\n"}
		if gitted {
			root = gitRepo(t, files)
		} else {
			for p, s := range files {
				write(t, root, p, s)
			}
		}
		w := open(t, root, repo.Options{})
		digest := func(kind, path string) string {
			t.Helper()
			is, hash, err := w.Digest(ctx(t), kind, path)
			must(t, err)
			if (hash != "") != (is == repo.Present) || hash != "" && len(hash) != 64 {
				t.Errorf("%s %s: %s %q", kind, path, is, hash)
			}
			return string(is) + hash
		}
		f, _ := stateOf("100644 f\n")
		if got := digest("file", "f"); got != "present"+f.SHA256 {
			t.Errorf("file: %s", got)
		}
		l, _ := stateOf("120000 f")
		if got := digest("file", "l"); got != "present"+l.SHA256 {
			t.Errorf("link: %s", got)
		}
		for kindPath, want := range map[string]string{"file no": "absent", "directory no": "absent", "file d": "unreadable", "directory f": "unreadable", "file .git/config": "unreadable"} {
			kind, path, _ := strings.Cut(kindPath, " ")
			if got := digest(kind, path); got != want {
				t.Errorf("%s: %s", kindPath, got)
			}
		}
		all, d := digest("directory", ""), digest("directory", "d")
		write(t, root, "d/new", "100644 untracked")
		if digest("directory", "d") == d || digest("directory", "") == all || digest("directory", "d/g") == d {
			t.Error("a new file does not change the digest")
		}
		must(t, os.Remove(filepath.Join(root, "d/new")))
		write(t, root, "d/g/h", "100755 h\n")
		if digest("directory", "d") == d {
			t.Error("a mode does not change the digest")
		}
		write(t, root, "d/g/h", "100644 h\n")
		write(t, root, "d/ignored.o", "100644 o")
		if same := digest("directory", "d") == d && digest("directory", "") == all; same != gitted {
			t.Errorf("an ignored file: the digest is the same: %v", same)
		}
		if _, _, err := w.Digest(ctx(t), "symbol", "f"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("symbol: %v", err)
		}
	}
}
