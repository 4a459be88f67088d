package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/patch"
	"roundtable/internal/patch/patchtest"
)

const onePatch = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+zwei
`

// folder makes a folder with a file a.txt, and a patch for it beside it.
func folder(t testing.TB) (dir, file string) {
	t.Helper()
	top := t.TempDir()
	dir, file = filepath.Join(top, "dir"), filepath.Join(top, "p.diff")
	save(t, filepath.Join(dir, "a.txt"), "one\ntwo\n")
	save(t, file, onePatch)
	return dir, file
}

func save(t testing.TB, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPatchExitCodes: what is wrong with the command line is 2, with the patch
// 1, and where nothing can be said of the patch it is 4.
func TestPatchExitCodes(t *testing.T) {
	dir, file := folder(t)
	bare := filepath.Join(t.TempDir(), "broken")
	save(t, filepath.Join(bare, ".git"), "gitdir: nowhere\n")
	unreadable := filepath.Join(t.TempDir(), "d")
	if err := os.Symlink("loop", filepath.Join(t.TempDir(), "loop")); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(unreadable, ".roundtable"), "not a folder")
	save(t, filepath.Join(unreadable, "a.txt"), "one\ntwo\n")
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"applies", []string{"check", "--dir", dir, file}, 0},
		{"refused", []string{"check", "--dir", bare[:strings.LastIndex(bare, "/")], file}, 1},
		{"no dir", []string{"check", file}, 2},
		{"dir is not there", []string{"check", "--dir", dir + "x", file}, 2},
		{"dir is a file", []string{"check", "--dir", file, file}, 2},
		{"patch is not there", []string{"check", "--dir", dir, file + "x"}, 2},
		{"patch is a folder", []string{"check", "--dir", dir, dir}, 2},
		{"unknown flag", []string{"check", "--dir", dir, "--fuzz", "3", file}, 2},
		{"strip is no number", []string{"check", "--dir", dir, "--strip", "x", file}, 2},
		{"strip below 0", []string{"check", "--dir", dir, "--strip=-1", file}, 2},
		{"out is not empty", []string{"check", "--dir", dir, "--out", filepath.Dir(dir), file}, 2},
		{"out is in dir", []string{"check", "--dir", dir, "--out", filepath.Join(dir, "new"), file}, 2},
		{"git cannot use it", []string{"check", "--dir", bare, file}, 2},
		{"unknown verb", []string{"frobnicate"}, 2},
		{"state folder is a file", []string{"apply", "--dir", unreadable, file}, 4},
		{"reverse into a file that is there", []string{"reverse", "--dir", dir, "--out", file, file}, 2},
		{"nothing to mend", []string{"explain", "--mended", file + ".m", file}, 2},
		{"nothing to recover", []string{"recover", "--dir", dir}, 0},
	} {
		out, errs, code := tool(t, "", append([]string{"patch"}, c.args...)...)
		if code != c.want || code > 1 && errs == "" {
			t.Errorf("%s: exit code %d, want %d: %q %q", c.name, code, c.want, out, errs)
		}
	}
	if got := contents(t, filepath.Join(dir, "a.txt")); got != "one\ntwo\n" {
		t.Errorf("the folder was changed: %q", got)
	}
}

// TestPatchTexts: what people read names the class, the place and what to do.
func TestPatchTexts(t *testing.T) {
	dir, file := folder(t)
	out, _, code := tool(t, "", "patch", "check", "--dir", dir, file)
	if code != 0 || !strings.Contains(out, "outcome    applied") || !strings.Contains(out, "modify a.txt +1 -1") || !strings.Contains(out, "manifest") {
		t.Errorf("%d %s", code, out)
	}
	out, _, code = tool(t, strings.ReplaceAll(onePatch, "two", "two "), "patch", "check", "--dir", dir, "-")
	for _, want := range []string{"outcome    refused", "class      apply.context_mismatch", "line       4", "path       a.txt", "hint       whitespace_only_difference", "advice     Send blanks"} {
		if !strings.Contains(out, want) || code != 1 {
			t.Errorf("no %q in %s (%d)", want, out, code)
		}
	}
	out, _, code = tool(t, "", "patch", "--help")
	if code != 0 || !strings.Contains(out, "patch check ") || !strings.Contains(out, "patch recover") {
		t.Errorf("%d %s", code, out)
	}
}

// TestPatchWords: the operations whose names begin with patch stay commands.
func TestPatchWords(t *testing.T) {
	for args, want := range map[string]bool{"patch validate P-1": true, "patch reject P-1": true, "apply P-1": true,
		"patch check x": false, "patch apply x": false, "patch": false, "patch --help": false, "patch explain --json x": false} {
		if got := generated(strings.Fields(args), terminal{}); got != want {
			t.Errorf("%s: generated %v", args, got)
		}
	}
	for _, o := range allOps() {
		if verb, ok := strings.CutPrefix(o.Name, "patch."); ok && verb != "apply" && !slices.Contains(patchOps, verb) {
			t.Errorf("%s cannot be called by its name", o.Name)
		}
	}
}

// TestPatchExplain: a patch is told without any folder; one that is refused is
// mended where there is only one way.
func TestPatchExplain(t *testing.T) {
	_, file := folder(t)
	v, code := toolJSON[verdict](t, "patch", "explain", file)
	if code != 0 || v.Outcome != "parsed" || len(v.Files) != 1 || v.Files[0].Op != "modify" || len(v.Files[0].Hunks) != 1 || *v.Strip != 1 {
		t.Errorf("%d %+v", code, v)
	}
	save(t, file, strings.ReplaceAll(onePatch, "zwei", "zw\u202eei"))
	if v, code := toolJSON[verdict](t, "patch", "explain", file); code != 0 || len(v.Notes) != 1 || v.Notes[0].Kind != patch.NoteBidi || v.Notes[0].Line != 7 {
		t.Errorf("%d %+v", code, v)
	}
	if v, code := toolJSON[verdict](t, "patch", "explain", "--strict-text", file); code != 1 || v.Class != "review.bidi" {
		t.Errorf("%d %+v", code, v)
	}
	save(t, file, strings.ReplaceAll(onePatch, "-1,2 +1,2", "-1,3 +1,3"))
	mended := file + ".mended"
	v, code = toolJSON[verdict](t, "patch", "explain", "--mended", mended, file)
	if code != 1 || v.Class != "parse.hunk_count_mismatch" || v.Meaning == "" || contents(t, mended) != onePatch {
		t.Errorf("%d %+v", code, v)
	}
	save(t, file, "--- x/y\n+++ x/y\n@@ -1 +1 @@\n-a\n+b\n")
	if v, code := toolJSON[verdict](t, "patch", "explain", file); code != 0 || len(v.Notes) == 0 {
		t.Errorf("of names without prefix: %d %+v", code, v)
	}
}

// TestPatchReverse: from the folder before and from the folder after comes a
// patch that takes the change back, byte for byte.
func TestPatchReverse(t *testing.T) {
	for _, c := range patchtest.Load(t, "../../internal/patch/testdata") {
		if c.Fields["outcome"] != "applied" || !slices.Contains([]string{"patches/003-no-newline-both", "patches/064-rename-swap", "patches/052-swap-files",
			"patches/070-binary-literal", "patches/001-simple-modify", "patches/062-symlink-create"}, c.Name) && len(c.Name)%3 != 0 {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, c, false)
			args := []string{"--dir", s.root, s.file}
			if c.Fields["strip"] == "0" {
				args = append(args, "--strip", "0")
			}
			before := patchtest.Read(t, s.root)
			early, late := s.file+".early", s.file+".late"
			play := func(verb string, more ...string) {
				t.Helper()
				if _, errs, code := tool(t, "", append(append([]string{"patch", verb}, args...), more...)...); code != 0 {
					t.Fatalf("%s: %d %s", verb, code, errs)
				}
			}
			play("reverse", "--out", early)
			play("apply")
			if strings.Contains(c.Name, "/123-") { // the mode of what it deletes is not stated
				late = early
			} else {
				play("reverse", "--out", late)
			}
			for _, back := range []string{early, late} {
				if v, code := toolJSON[verdict](t, "patch", "check", "--dir", s.root, back); code != 0 {
					t.Errorf("%s: %+v", back, v)
				}
			}
			if _, errs, code := tool(t, "", "patch", "apply", "--dir", s.root, late); code != 0 {
				t.Fatalf("%d %s", code, errs)
			}
			if got := patchtest.Read(t, s.root); !slices.Equal(got, before) {
				t.Errorf("taken back to\n%s\nwas\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

// TestPatchAttributes: where attributes give the work tree CR LF, a patch is
// taken back by a patch with LF.
func TestPatchAttributes(t *testing.T) {
	dir, file := folder(t)
	save(t, filepath.Join(dir, ".gitattributes"), "*.txt text=auto eol=crlf\n*.bin filter=x\n")
	save(t, filepath.Join(dir, "a.txt"), "one\r\ntwo\r\n")
	save(t, filepath.Join(dir, "f.bin"), "one\ntwo\n")
	cleanGit(t, dir, "init", "-q")
	cleanGit(t, dir, "add", "-A")
	cleanGit(t, dir, "commit", "-qm", "x")
	back := file + ".back"
	for _, args := range [][]string{{"reverse", "--out", back, file}, {"apply", file}, {"apply", back}} {
		if out, errs, code := tool(t, "", append([]string{"patch", args[0], "--attributes", "--dir", dir}, args[1:]...)...); code != 0 {
			t.Fatalf("%s: %d %s %s", args, code, out, errs)
		}
	}
	if got := contents(t, filepath.Join(dir, "a.txt")); got != "one\r\ntwo\r\n" || strings.Contains(contents(t, back), "\r") {
		t.Errorf("%q %q", got, contents(t, back))
	}
	if status := cleanGit(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("git sees %q", status)
	}
	save(t, file, strings.ReplaceAll(onePatch, "a.txt", "f.bin"))
	if v, _ := toolJSON[verdict](t, "patch", "check", "--attributes", "--dir", dir, file); v.Class != "apply.attr_filter" {
		t.Errorf("%+v", v)
	}
}

// TestPatchReadingEnds: a patch that never comes is not waited for once the
// program is told to end.
func TestPatchReadingEnds(t *testing.T) {
	dir, _ := folder(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, w := io.Pipe()
	defer w.Close()
	for name, args := range map[string][]string{
		"standard input": {"patch", "check", "--dir", dir, "-"}, "a FIFO": {"patch", "explain", fifo},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var errs bytes.Buffer
		if code := run(ctx, args, terminal{in, io.Discard, &errs, func(string) string { return "" }, nil}); code != 4 || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%s: exit code %d: %s", name, code, errs.String())
		}
	}
	if f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil { // who still waits may go
		f.Close()
	}
}

// TestReverseBothWays: where a folder may be as the patch leaves it and as it
// finds it, no reverse is guessed.
func TestReverseBothWays(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "a"), "AAA\n")
	save(t, filepath.Join(dir, "b"), "BBB\n")
	const swap = "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\ndiff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\n"
	out, errs, code := tool(t, swap, "patch", "reverse", "--dir", dir, "-")
	if code != 4 || out != "" || !strings.Contains(errs, "both") {
		t.Errorf("exit code %d: %q %q", code, out, errs)
	}
}

// TestPatchBelowTop: a folder in a Git work tree is a plain folder, unless Git
// tracks what is taken for the state folder in it.
func TestPatchBelowTop(t *testing.T) {
	top := t.TempDir()
	sub := filepath.Join(top, "in", "sub")
	cleanGit(t, top, "init", "-q")
	save(t, filepath.Join(sub, "f"), "x\n")
	const change = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"
	if out, errs, code := tool(t, change, "patch", "apply", "--dir", sub, "-"); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := tool(t, "", "patch", "recover", "--dir", sub); code != 0 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if got := contents(t, filepath.Join(sub, "f")); got != "y\n" {
		t.Errorf("%q", got)
	}
	save(t, filepath.Join(sub, ".roundtable", "keys", "k"), "brought\n")
	cleanGit(t, top, "add", "-f", "in/sub/.roundtable/keys/k")
	if out, errs, code := tool(t, strings.NewReplacer("-x", "-y", "+y", "+z").Replace(change), "patch", "apply", "--dir", sub, "-"); code == 0 || !strings.Contains(out+errs, "state.tracked") {
		t.Errorf("indexed: exit code %d: %s%s", code, out, errs)
	}
	cleanGit(t, top, "commit", "-qm", "brought")
	cleanGit(t, top, "rm", "-q", "--cached", "in/sub/.roundtable/keys/k")
	if out, errs, code := tool(t, "", "patch", "recover", "--dir", sub); code == 0 || !strings.Contains(out+errs, "racks") {
		t.Errorf("committed: exit code %d: %s%s", code, out, errs)
	}
}
