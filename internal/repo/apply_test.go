package repo_test

import (
	"os"
	"path/filepath"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// everyKind are files and changes with each thing a patch can do.
var everyKind = struct {
	files   map[string]spec
	changes []patch.Change
}{
	map[string]spec{
		"text.txt": "100644 one\n", "run.sh": "100644 #!/bin/sh\n", "norun.sh": "100755 x\n", "link": "120000 text.txt",
		"linked": "100644 was a file\n", "unlinked": "120000 norun.sh", "gone.txt": "100644 gone\n",
		"empties/deep/er/only.txt": "100644 only\n", "wasfile": "100644 a file\n", "wasdir/a": "100644 a\n", "wasdir/b/c": "100644 c\n",
		"kept/left.txt": "100644 left\n", "kept/away.txt": "100644 away\n",
	},
	[]patch.Change{
		change("text.txt", "100644 one\n", "100644 two\n"),
		change("run.sh", "100644 #!/bin/sh\n", "100755 #!/bin/sh\n"),
		change("norun.sh", "100755 x\n", "100644 y\n"),
		change("link", "120000 text.txt", "120000 run.sh"),
		change("linked", "100644 was a file\n", "120000 text.txt"),
		change("unlinked", "120000 norun.sh", "100644 was a link\n"),
		change("gone.txt", "100644 gone\n", ""),
		change("empties/deep/er/only.txt", "100644 only\n", ""),
		change("wasfile", "100644 a file\n", ""),
		change("wasfile/in/it", "", "100644 new\n"),
		change("wasdir/a", "100644 a\n", ""),
		change("wasdir/b/c", "100644 c\n", ""),
		change("wasdir", "", "100755 now a file\n"),
		change("kept/away.txt", "100644 away\n", ""),
		change("new/folder/for/it.txt", "", "100644 made\n"),
		change("new/link", "", "120000 folder/for/it.txt"),
	},
}

// after is the files that changes make of others.
func after(files map[string]spec, changes []patch.Change) map[string]spec {
	out := map[string]spec{}
	for p, s := range files {
		out[p] = s
	}
	for _, c := range changes {
		if c.After.Kind == patch.Absent {
			delete(out, c.Path)
		} else {
			out[c.Path] = c.After.Mode + " " + string(c.Content)
		}
	}
	return out
}

// tree is the listing of a fresh folder with the files.
func tree(t testing.TB, files map[string]spec) string {
	t.Helper()
	root := t.TempDir()
	for p, s := range files {
		write(t, root, p, s)
	}
	must(t, os.Chmod(root, 0o755))
	return listing(t, root, false)
}

func TestApply(t *testing.T) {
	for _, gitted := range []bool{true, false} {
		root := t.TempDir()
		if gitted {
			root = gitRepo(t, everyKind.files)
		} else {
			for p, s := range everyKind.files {
				write(t, root, p, s)
			}
		}
		must(t, os.Chmod(root, 0o755))
		w := open(t, root, repo.Options{})
		if w.Git() != gitted {
			t.Fatal("not recognised")
		}
		r, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: everyKind.changes})
		must(t, err)
		want := tree(t, after(everyKind.files, everyKind.changes))
		if got := listing(t, root, false); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		if r.AfterDigest != repo.PathsDigest(r.After) || len(r.Before) != len(everyKind.changes) {
			t.Errorf("receipt %+v", r)
		}
		if m, err := w.Outcome("TX-1", 1); m != repo.Committed || err != nil {
			t.Errorf("outcome %s %v", m, err)
		}
		must(t, w.Finish(ctx(t), "TX-1", 1))
		must(t, w.Finish(ctx(t), "TX-1", 1))
		left, err := os.ReadDir(filepath.Join(root, ".roundtable", "tx"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
		_, err = w.Apply(ctx(t), "TX-1", 2, repo.Plan{Changes: everyKind.changes})
		if fault.CodeOf(err) != "state.stale" {
			t.Errorf("applied twice: %v", err)
		}
	}
}
