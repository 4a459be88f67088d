package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
	"roundtable/internal/patch/patchtest"
)

// tool runs the program and returns what it wrote and how it ended.
func tool(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, terminal{in: strings.NewReader(stdin), out: &out, err: &errs, env: func(string) string { return "" }})
	return out.String(), errs.String(), code
}

// toolJSON is tool for commands that answer JSON.
func toolJSON[T any](t testing.TB, args ...string) (v T, code int) {
	t.Helper()
	out, errs, code := tool(t, "", append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%q: %v: %q %q", args, err, out, errs)
	}
	return v, code
}

func cleanGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A scene is one case on disk.
type scene struct {
	patchtest.Case
	root, outside, file string
	inGit               bool
}

func newScene(t testing.TB, c patchtest.Case, inGit bool) scene {
	top := t.TempDir()
	s := scene{Case: c, root: filepath.Join(top, "root"), outside: filepath.Join(top, "outside"), file: filepath.Join(top, "patch.diff"), inGit: inGit}
	for _, dir := range []string{s.root, s.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(s.outside, "target.txt"), "secret\n")
	put(filepath.Join(s.outside, "hl.txt"), "k\n")
	put(s.file, strings.ReplaceAll(string(c.Patch), "/OUT/x", filepath.Join(s.outside, "x")))
	c.Write(t, s.root)
	if inGit {
		cleanGit(t, s.root, "init", "-q")
		cleanGit(t, s.root, "config", "core.autocrlf", "false")
		cleanGit(t, s.root, "add", "-A")
		cleanGit(t, s.root, "commit", "-q", "--allow-empty", "-m", "before")
	}
	return s
}

// around is everything that no patch may change: what lies outside the root,
// and the repository but for its objects.
func (s scene) around(t testing.TB) string {
	var b strings.Builder
	for _, dir := range []string{s.outside, filepath.Join(s.root, ".git")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "objects":
				return fs.SkipDir
			case d.IsDir():
				fmt.Fprintln(&b, path)
				return nil
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %s\n", path, patch.Digest(data))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// An option is one way to run a case.
type option struct {
	prefix string // of the expectation's keys
	args   []string
}

func (s scene) options() []option {
	strip := []string{}
	if s.Fields["strip"] == "0" {
		strip = []string{"--strip", "0"}
	}
	with := func(args ...string) []string { return slices.Concat(strip, args) }
	all := []option{{"", with("--strict-text")}}
	switch s.Fields["also_with"] {
	case "strict_oid=off":
		all = append(all, option{"also_", with("--strict-text", "--no-strict-oid")})
	case "strict_text=off":
		all = append(all, option{"also_", with()})
	case "git_attributes=on":
		if s.inGit { // outside Git there are none
			all = append(all, option{"also_", with("--strict-text", "--attributes")})
		}
	}
	return all
}

// TestPatchCases: by the command, on disk, every case has the outcome, class,
// hint and tree that is expected, and nothing else is touched.
func TestPatchCases(t *testing.T) {
	for i, c := range patchtest.Load(t, "../../internal/patch/testdata") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			newScene(t, c, false).play(t)
			hostile := strings.HasPrefix(c.Name, "hostile")
			if hostile && i%4 == 0 || !hostile && i%6 == 0 || c.Fields["also_with"] != "" || os.Getenv("ROUNDTABLE_LONG") != "" {
				newScene(t, c, true).play(t)
			}
		})
	}
}

func (s scene) play(t *testing.T) {
	t.Helper()
	around := s.around(t)
	before := patchtest.Read(t, s.root)
	for i, o := range s.options() {
		out := filepath.Join(filepath.Dir(s.root), fmt.Sprint("out", i))
		v, code := toolJSON[verdict](t, append([]string{"patch", "check", "--dir", s.root, "--out", out, s.file}, o.args...)...)
		s.judge(t, "check "+o.prefix, o, v, code)
		if got := patchtest.Read(t, s.root); !slices.Equal(got, before) {
			t.Fatalf("check changed the folder:\n%s", strings.Join(got, "\n"))
		}
		if _, err := os.Lstat(filepath.Join(s.root, ".roundtable")); err == nil {
			t.Error("check made a state folder")
		}
		if v.Outcome == "applied" {
			if got, want := patchtest.Read(t, out), s.Trees[o.prefix+"tree"]; !slices.Equal(got, want) {
				t.Errorf("--out has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			s.namesTree(t, v, out)
		}
	}
	for _, o := range s.options() { // the first that applies changes the folder
		v, code := toolJSON[verdict](t, append([]string{"patch", "apply", "--dir", s.root, s.file}, o.args...)...)
		s.judge(t, "apply "+o.prefix, o, v, code)
		if got, want := patchtest.Read(t, s.root), s.Trees[o.prefix+"tree"]; !slices.Equal(got, want) {
			t.Errorf("the folder is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if _, err := os.Lstat(filepath.Join(s.root, ".roundtable")); (err == nil) != (v.Outcome == "applied") {
			t.Errorf("a state folder after %s: %v", v.Outcome, err)
		}
		if v.Outcome == "applied" {
			break
		}
	}
	if got := s.around(t); got != around {
		t.Errorf("outside the tree is\n%s\nwas\n%s", got, around)
	}
}

// judge holds a verdict against the expectation.
func (s scene) judge(t *testing.T, how string, o option, v verdict, code int) {
	t.Helper()
	want := func(key string) string { return s.Fields[o.prefix+key] }
	if v.Outcome != want("outcome") || v.Class != want("class") || v.Hint != want("hint") {
		t.Fatalf("%s: %s %s [%s] %s, want %s %s [%s]", how, v.Outcome, v.Class, v.Hint, v.Message, want("outcome"), want("class"), want("hint"))
	}
	if n := want("notes"); n != "" && !slices.ContainsFunc(v.Notes, func(x patch.Note) bool { return string(x.Kind) == n }) {
		t.Errorf("%s: notes %v, want %s", how, v.Notes, n)
	}
	if exit := map[string]int{"applied": 0, "refused": 1}[v.Outcome]; code != exit {
		t.Errorf("%s: %s with exit code %d", how, v.Outcome, code)
	}
	if s := v.text(); strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 && r != '\n' || r == 0x7f || r == 0x202e }) {
		t.Errorf("%s: not escaped: %q", how, s)
	}
}

// namesTree holds the tree's id against git's, or the listing's digest.
func (s scene) namesTree(t *testing.T, v verdict, out string) {
	t.Helper()
	if !s.inGit {
		var rows []patch.PathEntry
		for _, l := range patchtest.Read(t, out) {
			rows = append(rows, entryOf(t, out, l))
		}
		if want := patch.PathsDigest(rows); v.Tree != want || v.TreeKind != "manifest" {
			t.Errorf("tree %s %s, want %s", v.TreeKind, v.Tree, want)
		}
		return
	}
	if strings.Contains(s.Name, "/123-") { // git takes /dev/null for a file there
		return
	}
	index := filepath.Join(filepath.Dir(s.root), "index")
	cleanGit(t, s.root, "read-tree", "--index-output="+index, "HEAD")
	args := []string{"apply", "--cached", "--whitespace=nowarn"}
	if strings.Contains(s.Name, "/015-") {
		args = append(args, "--unidiff-zero")
	}
	if strings.HasSuffix(s.Fields["strip"], "0") {
		args = append(args, "-p0")
	}
	cmd := exec.Command("sh", "-c", `git "$@" && git write-tree`, "sh")
	cmd.Args = append(append(cmd.Args, args...), s.file)
	cmd.Dir, cmd.Env = s.root, append(os.Environ(), "GIT_INDEX_FILE="+index)
	want, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(want)) != v.Tree || v.TreeKind != "git" {
		t.Errorf("tree %s %s, git has %s (%v)", v.TreeKind, v.Tree, want, err)
	}
}

// entryOf is the entry of a line of Read.
func entryOf(t *testing.T, root, line string) patch.PathEntry {
	t.Helper()
	f := strings.SplitN(line, " ", 4)
	e := patch.PathEntry{Path: unspell(f[3]), State: patch.State{Kind: patch.File, Mode: f[0], SHA256: f[2]}}
	if f[0] == "120000" {
		text, err := os.Readlink(filepath.Join(root, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		e.State = patch.State{Kind: patch.Symlink, Mode: f[0], SHA256: patch.Digest([]byte(text)), Size: int64(len(text))}
		return e
	}
	if _, err := fmt.Sscan(f[1], &e.State.Size); err != nil {
		t.Fatal(err)
	}
	return e
}

// unspell is the path that expect.txt quotes.
func unspell(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	var b []byte
	for i := 1; i < len(s)-1; i++ {
		switch {
		case s[i] != '\\':
			b = append(b, s[i])
		case s[i+1] == '"' || s[i+1] == '\\':
			b, i = append(b, s[i+1]), i+1
		default:
			b, i = append(b, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0')), i+3
		}
	}
	return string(b)
}
