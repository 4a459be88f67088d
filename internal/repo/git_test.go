package repo_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// Nothing that a repository names in its configuration is ever run.
func TestNothingRuns(t *testing.T) {
	root := gitRepo(t, map[string]spec{"f.txt": "100644 f", ".gitattributes": "100644 *.txt filter=evil diff=evil\n*.md filter=a=b\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	evil := "touch " + ran + "; cat"
	for _, kv := range [][2]string{
		{"filter.evil.clean", evil}, {"filter.evil.smudge", evil}, {"filter.evil.process", evil}, {"filter.evil.required", "true"},
		{"filter.a=b.clean", evil}, {"filter.a=b.smudge", evil}, {"diff.evil.textconv", evil}, {"diff.external", evil},
		{"core.fsmonitor", evil}, {"core.pager", evil}, {"core.sshCommand", evil}, {"core.editor", evil}, {"gpg.program", evil},
	} {
		git(t, root, "config", kv[0], kv[1])
	}
	for _, hook := range []string{"post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"} {
		write(t, root, ".git/hooks/"+hook, "100755 #!/bin/sh\n"+evil+"\n")
	}
	write(t, root, "f.txt", "100644 changed")
	write(t, root, "new.txt", "100644 untracked")
	write(t, root, "new.md", "100644 untracked")
	w := open(t, root, repo.Options{})
	changes := []patch.Change{change("g.txt", "", "100644 g"), change("new.md", "100644 untracked", "100644 more")}
	dst := t.TempDir()
	_, err := w.Materialise(ctx(t), changes, dst)
	must(t, err)
	_, _, err = w.Digest(ctx(t), "directory", "")
	must(t, err)
	_, err = w.Snapshot(ctx(t), []string{"f.txt"})
	must(t, err)
	_, err = w.Files(ctx(t), "")
	must(t, err)
	if err := converted(t, w, changes); fault.CodeOf(err) != "apply.attr_filter" {
		t.Errorf("attributes: %v", err)
	}
	_, err = w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: changes})
	must(t, err)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository ran")
	}
	for p, want := range map[string]string{"f.txt": "changed", "new.txt": "untracked", "new.md": "more", "g.txt": "g"} {
		if b, err := os.ReadFile(filepath.Join(dst, p)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", p, b, err)
		}
	}
}

// A repository that belongs to somebody else is one its admin registered.
func TestForeignOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("giving files away takes root")
	}
	root := gitRepo(t, map[string]spec{"f": "100644 f"})
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, 65534, 65534)
		}
		return err
	}))
	w := open(t, root, repo.Options{})
	c, err := w.Candidate(ctx(t), nil)
	must(t, err)
	if c.Kind != "git" || len(c.ID) != 40 {
		t.Errorf("%v", c)
	}
	_, err = w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("f", "100644 f", "100755 g")}})
	must(t, err)
	fi, err := os.Stat(filepath.Join(root, "f"))
	must(t, err)
	if st := fi.Sys().(*syscall.Stat_t); st.Uid != 65534 || st.Gid != 65534 {
		t.Errorf("the owner is now %d:%d", st.Uid, st.Gid)
	}
}

// The person's own ignore file and line ends count; their other settings do not.
func TestUserConfiguration(t *testing.T) {
	home := t.TempDir()
	write(t, home, ".gitconfig", "100644 [core]\n\tautocrlf = true\n[alias]\n\tls-files = !false\n")
	write(t, home, ".config/git/ignore", "100644 secret\n")
	root := gitRepo(t, map[string]spec{"f": "100644 a\nb\n"})
	write(t, root, "secret", "100644 secret")
	w := open(t, root, repo.Options{UserEnv: []string{"HOME=" + home, "PATH=/evil", "GIT_DIR=/evil"}})
	files, err := w.Files(ctx(t), "")
	must(t, err)
	if !slices.Equal(files, []string{"f"}) {
		t.Errorf("files %q", files)
	}
	c, err := w.Candidate(ctx(t), nil)
	must(t, err)
	if want := git(t, root, "rev-parse", "HEAD^{tree}"); c.ID != want {
		t.Errorf("candidate %s, want %s", c.ID, want)
	}
	err = converted(t, w, []patch.Change{change("f", "100644 a\nb\n", "100644 a\nc\n")})
	if fault.CodeOf(err) != "apply.attr_filter" {
		t.Errorf("autocrlf: %v", err)
	}
}

// converted asks whether git converts what changes leave as the engine does.
func converted(t *testing.T, w *repo.Workspace, changes []patch.Change) error {
	t.Helper()
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	tree, err := w.Tree(ctx(t))
	must(t, err)
	with, err := w.WithAttributes(ctx(t), tree, paths)
	must(t, err)
	return w.CheckConversion(ctx(t), with, changes, nil)
}

func TestCheckConversion(t *testing.T) {
	attrs := "*.lfs filter=lfs\n*.id ident\n*.enc working-tree-encoding=UTF-16\n*.auto text=auto\n*.crlf eol=crlf\n*.lf text eol=lf\n*.raw -text\n*.off -filter\n"
	root := gitRepo(t, map[string]spec{".gitattributes": "100644 " + attrs, "old.lf": "100644 a\r\n", "bin.auto": "100644 \x00\r\n"})
	w := open(t, root, repo.Options{})
	lf, crlf := "100644 a\nb\n", "100644 a\r\nb\r\n"
	for _, c := range []struct {
		change patch.Change
		bad    bool
	}{
		{change("x", "", lf), false}, {change("x", "", crlf), false}, {change("x.raw", "", crlf), false}, {change("x.off", "", lf), false},
		{change("x.lfs", "", lf), true}, {change("d/x.lfs", "100644 gone", ""), true}, {change("x.id", "", lf), true}, {change("x.enc", "", lf), true},
		{change("x.auto", "", lf), false}, {change("x.auto", "", crlf), true}, {change("x.auto", "", "100644 \x00\r\n"), false},
		{change("bin.auto", "100644 \x00\r\n", ""), false}, {change("x.crlf", "", lf), true}, {change("x.crlf", "", crlf), false},
		{change("x.crlf", "", "100644 no line"), false}, {change("x.lf", "", lf), false}, {change("old.lf", "100644 a\r\n", lf), true},
		{change("x.crlf", "", "120000 to"), false},
	} {
		err := converted(t, w, []patch.Change{change("fine", "", lf), c.change})
		if bad := fault.CodeOf(err) == "apply.attr_filter"; bad != c.bad || err != nil && !bad {
			t.Errorf("%s %+v: %v", c.change.Path, c.change.After, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	root := gitRepo(t, map[string]spec{
		"f": "100644 0123456789", "l": "120000 f", ".gitignore": "100644 secret*\n", "d/g": "100644 g", "ld": "120000 d", "forced.secret": "100644 tracked",
	})
	write(t, root, "secret", "100644 s")
	write(t, root, "secret.d/in", "100644 s")
	write(t, root, "untracked", "100644 u")
	write(t, root, "*", "100644 star")
	w := open(t, root, repo.Options{})
	must(t, w.InitExclude(ctx(t)))
	for _, c := range []struct {
		path          string
		offset, limit int64
		want          string
		cut           bool
	}{
		{"f", 0, 100, "0123456789", false}, {"f", 0, 10, "0123456789", false}, {"f", 0, 4, "0123", true}, {"f", 8, 4, "89", false},
		{"f", 50, 4, "", false}, {"l", 0, 9, "f", false}, {"untracked", 0, 9, "u", false}, {"d/g", 0, 9, "g", false}, {"*", 0, 9, "star", false},
	} {
		r, err := w.ReadFile(ctx(t), c.path, c.offset, c.limit)
		if err != nil || string(r.Data) != c.want || r.Truncated != c.cut {
			t.Errorf("%s at %d: %q %v %v", c.path, c.offset, r.Data, r.Truncated, err)
		}
	}
	for _, path := range []string{
		"secret", "secret.d/in", "no", "d", "ld/g", ".git/config", ".roundtable/lock", "../x", "/etc/passwd", "", ".", "d/", "a//b", "s*", ":(top)f", "f\x00",
	} {
		if r, err := w.ReadFile(ctx(t), path, 0, 10); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q: %q %v", path, r.Data, err)
		}
	}
	files, err := w.Files(ctx(t), "")
	must(t, err)
	if got := strings.Join(files, " "); got != "* .gitignore d/g f forced.secret l ld untracked" {
		t.Errorf("files %s", got)
	}
	if files, err := w.Files(ctx(t), "d"); err != nil || !slices.Equal(files, []string{"d/g"}) {
		t.Errorf("files of d: %q %v", files, err)
	}
	for path, want := range map[string]bool{"secret": true, "f": false, "secret.d/x": true, "nothing": false} {
		if got, err := w.IsIgnored(ctx(t), path); err != nil || got != want {
			t.Errorf("%s ignored: %v %v", path, got, err)
		}
	}
}

func TestGitVersion(t *testing.T) {
	if v, err := repo.GitVersion(ctx(t), repo.Options{Path: os.Getenv("PATH")}); err != nil || !strings.HasPrefix(v, "2.") {
		t.Errorf("%q %v", v, err)
	}
	dir := t.TempDir()
	for answer, code := range map[string]string{
		"git version 2.31.9": "git_too_old", "git version 1.8.3.1": "git_too_old", "git version 3.0": "", "git version 2.39.5 (Apple Git-154)": "", "nonsense": "internal",
	} {
		write(t, dir, "git", "100755 #!/bin/sh\necho '"+answer+"'\n")
		_, err := repo.GitVersion(ctx(t), repo.Options{Git: filepath.Join(dir, "git")})
		if code == "" && err != nil || code != "" && fault.CodeOf(err) != code {
			t.Errorf("%s: %v", answer, err)
		}
	}
	if _, err := repo.GitVersion(ctx(t), repo.Options{Git: filepath.Join(dir, "none")}); fault.CodeOf(err) != "git_missing" {
		t.Errorf("none: %v", err)
	}
}
