package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func TestTree(t *testing.T) {
	for _, walk := range []bool{false, true} {
		root := gitRepo(t, map[string]spec{
			"f": "100644 bytes", "x": "100755 run", "d/e/f": "100644 deep", "l": "120000 f", "ld": "120000 d", "out": "120000 /etc",
		})
		must(t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o644))
		git(t, root, "init", "-q", "nested")
		write(t, root, "nested/n", "100644 theirs")
		must(t, os.MkdirAll(filepath.Join(root, "d", ".GIT"), 0o755))
		write(t, root, "data/log.db", "100644 ours")
		w := open(t, root, repo.Options{Reserved: []string{"data"}})
		if walk {
			w.WalkComponents()
		}
		tree, err := w.Tree(ctx(t))
		must(t, err)
		for path, want := range map[string]patch.State{
			"":                                 {Kind: patch.Dir},
			"f":                                {Kind: patch.File, Mode: "100644", Size: 5},
			"x":                                {Kind: patch.File, Mode: "100755", Size: 3},
			"d/e":                              {Kind: patch.Dir},
			"d/e/f":                            {Kind: patch.File, Mode: "100644", Size: 4},
			"l":                                {Kind: patch.Symlink, Mode: "120000", Size: 1},
			"ld/e/f":                           none, // below a link
			"out/passwd":                       none,
			"f/below":                          none,
			"no":                               none,
			"no/such":                          none,
			"fifo":                             {Kind: patch.Special},
			".git":                             {Kind: patch.Special},
			".git/config":                      {Kind: patch.Special},
			"d/.GIT":                           {Kind: patch.Special},
			".roundtable":                      {Kind: patch.Special},
			".Roundtable/x":                    {Kind: patch.Special},
			"nested":                           {Kind: patch.Special},
			"nested/n":                         none,
			"data":                             {Kind: patch.Special},
			"data/log.db":                      {Kind: patch.Special},
			strings.Repeat("long/", 500) + "x": none,
		} {
			got, err := tree.Stat(path)
			if err != nil || got != want {
				t.Errorf("Stat(%q) = %+v, %v; want %+v", path, got, err, want)
			}
		}
		for path, want := range map[string]string{"f": "bytes", "l": "f", "d/e/f": "deep"} {
			if b, err := tree.Read(path); err != nil || string(b) != want {
				t.Errorf("Read(%q) = %q, %v", path, b, err)
			}
		}
		for _, path := range []string{"fifo", ".git/config", "ld/e/f", "d", "nope", ".roundtable/lock", "nested/n", "data/log.db"} {
			if b, err := tree.Read(path); err == nil {
				t.Errorf("Read(%q) = %q", path, b)
			}
		}
		for dir, want := range map[string]string{"": "d f fifo l ld nested out x", "d": "e", "ld": "", "f": "", "no": "", ".git": ""} {
			names, err := tree.Names(dir)
			if err != nil || strings.Join(names, " ") != want {
				t.Errorf("Names(%q) = %q, %v; want %s", dir, names, err, want)
			}
		}
	}
}

func TestTreeBoundsAFile(t *testing.T) {
	root := t.TempDir()
	write(t, root, "big", "100644 0123456789")
	w := open(t, root, repo.Options{MaxFile: 9})
	tree, err := w.Tree(ctx(t))
	must(t, err)
	if _, err := tree.Read("big"); fault.CodeOf(err) != "limit.file_bytes" {
		t.Errorf("read: %v", err)
	}
}

func TestGitlinksAreSpecial(t *testing.T) {
	sub := gitRepo(t, map[string]spec{"s": "100644 sub"})
	root := gitRepo(t, map[string]spec{"f": "100644 f"})
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", sub, "mod")
	git(t, root, "commit", "-qm", "sub")
	git(t, root, "submodule", "deinit", "-q", "-f", "mod") // the folder is empty now
	w := open(t, root, repo.Options{})
	tree, err := w.Tree(ctx(t))
	must(t, err)
	if s, err := tree.Stat("mod"); err != nil || s.Kind != patch.Special {
		t.Errorf("%+v %v", s, err)
	}
	_, err = w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("mod/x", "", "100644 x")}})
	if fault.CodeOf(err) != "path.dir_conflict" {
		t.Errorf("wrote into a submodule: %v", err)
	}
	// Its candidate keeps the link, and a checkout an empty folder.
	c, err := w.Materialise(ctx(t), nil, t.TempDir())
	must(t, err)
	if want := git(t, root, "rev-parse", "HEAD^{tree}"); c.ID != want {
		t.Errorf("candidate %s, want %s", c.ID, want)
	}
}

func TestOpen(t *testing.T) {
	main := gitRepo(t, map[string]spec{"f": "100644 f", "sub/g": "100644 g"})
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, main, "worktree", "add", "-q", linked)
	separate := t.TempDir()
	git(t, separate, "init", "-q", "--separate-git-dir", filepath.Join(separate, "hidden"))
	write(t, separate, "f", "100644 f")
	git(t, separate, "add", "f")
	super := gitRepo(t, nil)
	git(t, super, "-c", "protocol.file.allow=always", "submodule", "add", "-q", main, "mod")
	sha256 := t.TempDir()
	git(t, sha256, "init", "-q", "--object-format=sha256")
	write(t, sha256, "f", "100644 f")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(main, link))
	for what, root := range map[string]string{
		"main": main, "linked": linked, "separate": separate, "submodule": filepath.Join(super, "mod"), "sha256": sha256, "link": link,
	} {
		w := open(t, root, repo.Options{})
		if !w.Git() {
			t.Errorf("%s is no Git work tree", what)
		}
		must(t, w.InitExclude(ctx(t)))
		must(t, w.InitExclude(ctx(t)))
		if ignored, err := w.IsIgnored(ctx(t), ".roundtable/lock"); err != nil || !ignored {
			t.Errorf("%s: .roundtable is not ignored: %v", what, err)
		}
		changes := []patch.Change{change("f", "100644 f", "100644 changed"), change("new/file", "", "120000 ../f")}
		want, err := w.Candidate(ctx(t), changes)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_, err = w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: changes})
		must(t, err)
		must(t, w.Finish(ctx(t), "TX-1", 1))
		if got, err := w.Candidate(ctx(t), nil); err != nil || got != want {
			t.Errorf("%s: applied is %v, candidate was %v: %v", what, got, want, err)
		}
		git(t, root, "add", "f", "new") // git itself would add a Git folder under another name
		if got := git(t, root, "write-tree"); got != want.ID {
			t.Errorf("%s: git has %s, candidate was %s", what, got, want.ID)
		}
		git(t, root, "reset", "-q")
		write(t, root, "f", "100644 f")
		must(t, os.RemoveAll(filepath.Join(root, "new")))
	}
	w := open(t, separate, repo.Options{})
	tree, err := w.Tree(ctx(t))
	must(t, err)
	if s, err := tree.Stat("hidden/config"); err != nil || s.Kind != patch.Special {
		t.Errorf("the Git folder shows: %+v %v", s, err)
	}
	for root, code := range map[string]string{
		filepath.Join(main, "no"): "workspace.no_folder", filepath.Join(main, "f"): "workspace.no_folder",
	} {
		if _, err := repo.Open(ctx(t), root, repo.Options{}); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", root, err)
		}
	}
	broken := t.TempDir()
	write(t, broken, ".git", "100644 gitdir: /nowhere")
	if _, err := repo.Open(ctx(t), broken, repo.Options{Path: os.Getenv("PATH")}); fault.CodeOf(err) != "workspace.not_git" {
		t.Errorf("broken: %v", err)
	}
}
