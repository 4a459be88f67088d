package world_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/internal/blob"
	"roundtable/internal/fault"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gitIn runs the real git with nobody's configuration.
func gitIn(t testing.TB, dir string, stdin []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), err
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := gitIn(t, dir, nil, args...)
	must(t, err)
	return strings.TrimSuffix(out, "\n")
}

func put(t testing.TB, root, name string, data []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777))
	must(t, os.WriteFile(filepath.Join(root, name), data, 0o666))
}

// files is what lies in a work tree: mode and bytes by path.
func files(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if err != nil || d.IsDir() {
			if rel == ".git" || rel == ".roundtable" {
				return fs.SkipDir
			}
			return err
		}
		info, err := d.Info()
		must(t, err)
		data, err := os.ReadFile(path)
		must(t, err)
		all[rel] = fmt.Sprint(info.Mode()&0o100, " ", string(data))
		return nil
	}))
	return all
}

// setups are the ways in which a work tree comes to have CR LF, or not.
var setups = []struct {
	name, attributes string
	config           []string
}{
	{"autocrlf", "", []string{"core.autocrlf=true"}},
	{"input", "", []string{"core.autocrlf=input"}},
	{"eol", "*.txt text eol=crlf\n*.raw -text\n", nil},
	{"auto eol", "* text=auto eol=crlf\n*.raw -text\n", nil},
	{"auto native", "* text=auto\n", []string{"core.eol=crlf"}},
	{"auto", "* text=auto\n", nil},
	{"old spelling", "*.txt crlf\n*.auto crlf=input\n", []string{"core.eol=crlf"}},
	{"lf within", "*.txt text eol=lf\n", []string{"core.autocrlf=true"}},
	{"nothing", "", nil},
}

// text makes a file's bytes: mostly lines, now and then with what git takes
// for binary or with line ends of the other kind.
func text(rnd *rand.Rand) []byte {
	var b bytes.Buffer
	for range 3 + rnd.IntN(25) {
		fmt.Fprintf(&b, "line %d", rnd.IntN(1000))
		if rnd.IntN(150) == 0 {
			b.WriteString([]string{"\x00", "\x01\x02\x03", "a\rb", "\r\nx"}[rnd.IntN(4)])
		}
		b.WriteByte('\n')
	}
	if rnd.IntN(8) == 0 {
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}

// crossed is a repository under a setup, checked out anew, and a patch that git
// made of edits to it.
type crossed struct {
	root  string
	patch []byte
}

var names = []string{"a.txt", "b.txt", "c.raw", "d.auto", "sub/e.txt", "sub/f", "g.bat"}

// cross makes one.
func cross(t testing.TB, rnd *rand.Rand, attributes string, config []string) crossed {
	t.Helper()
	c := crossed{root: t.TempDir()}
	git(t, c.root, "init", "-q")
	for _, name := range names {
		if data := text(rnd); rnd.IntN(10) == 0 {
			put(t, c.root, name, bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))) // kept so
		} else {
			put(t, c.root, name, data)
		}
	}
	git(t, c.root, "-c", "core.autocrlf=false", "add", "-A")
	if attributes != "" {
		put(t, c.root, ".gitattributes", []byte(attributes))
		git(t, c.root, "add", ".gitattributes")
	}
	git(t, c.root, "commit", "-qm", "first")
	for _, kv := range config {
		k, v, _ := strings.Cut(kv, "=")
		git(t, c.root, "config", k, v)
	}
	again := func() {
		for _, name := range names {
			if err := os.Remove(filepath.Join(c.root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		must(t, os.Remove(filepath.Join(c.root, ".git", "index")))
		git(t, c.root, "reset", "-q", "--hard")
	}
	again()
	for range 1 + rnd.IntN(3) {
		c.edit(t, rnd)
	}
	git(t, c.root, "add", "-A")
	out, err := gitIn(t, c.root, nil, "diff", "--cached", "--binary", "--full-index", "-M")
	must(t, err)
	c.patch = []byte(out)
	git(t, c.root, "rm", "-rqf", "--cached", ".")
	must(t, os.RemoveAll(filepath.Join(c.root, "new")))
	again()
	return c
}

// edit changes the work tree as a person does.
func (c crossed) edit(t testing.TB, rnd *rand.Rand) {
	t.Helper()
	name := names[rnd.IntN(len(names))]
	data, err := os.ReadFile(filepath.Join(c.root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	end := []byte("\n")
	if bytes.Contains(data, []byte("\r\n")) && rnd.IntN(10) > 0 {
		end = []byte("\r\n")
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	i := rnd.IntN(len(lines))
	switch rnd.IntN(6) {
	case 0:
		must(t, os.Remove(filepath.Join(c.root, name)))
		return
	case 1:
		put(t, c.root, fmt.Sprintf("new/%d.txt", rnd.IntN(3)), bytes.ReplaceAll(text(rnd), []byte("\n"), end))
		return
	case 2:
		must(t, os.Rename(filepath.Join(c.root, name), filepath.Join(c.root, name+".txt")))
		must(t, os.MkdirAll(filepath.Join(c.root, "new"), 0o777))
		must(t, os.Rename(filepath.Join(c.root, name+".txt"), filepath.Join(c.root, "new", filepath.Base(name)+".txt")))
		return
	case 3:
		lines = slices.Delete(lines, i, i+1)
	default:
		lines = slices.Insert(lines, i, append([]byte("inserted"), end...))
	}
	put(t, c.root, name, bytes.Join(lines, nil))
}

// A service is a world over blobs of its own.
type service struct {
	*world.World
	blobs *blob.Store
	tx    int
}

func serve(t testing.TB) *service {
	t.Helper()
	return serveIn(t, repo.Options{})
}

func serveIn(t testing.TB, o repo.Options) *service {
	t.Helper()
	blobs, err := blob.Open(t.TempDir(), blob.Options{})
	must(t, err)
	o.Path = os.Getenv("PATH")
	w := world.New(blobs, t.TempDir(), o)
	t.Cleanup(func() { must(t, errors.Join(w.Close(), blobs.Close())) })
	return &service{World: w, blobs: blobs}
}

// apply applies a patch as a transaction does, and returns its files.
func (s *service) apply(t testing.TB, root string, data []byte) (changed []events.ChangedPath, err error) {
	t.Helper()
	changes, err := s.Plan(t.Context(), root, data)
	if err != nil {
		return nil, err
	}
	space, err := s.Workspace(t.Context(), root)
	must(t, err)
	s.tx++
	tx := fmt.Sprint("TX-", s.tx)
	plan := repo.Plan{Changes: changes}
	if space.Commits() {
		by := repo.Identity{Name: "T", Email: "t@example.org"}
		plan.Commit = &repo.Commit{Author: by, Committer: by, Message: "Change", Time: time.Unix(1_700_000_000, 0).UTC()}
	}
	r, err := space.Apply(t.Context(), tx, 1, plan)
	if err == nil {
		err = space.Finish(t.Context(), tx, 1)
	}
	if err == nil {
		lies, err := s.Lies(t.Context(), root, tx, 1, world.ChangedPaths(r.Before, r.After))
		must(t, err)
		if lies.Repository != "after" {
			t.Errorf("%s lies as %+v", tx, lies)
		}
	}
	return world.ChangedPaths(r.Before, r.After), err
}

// TestLineEndsAreGits: under every setup, what is accepted gives git's tree and
// git's bytes in the work tree, and can be taken back to the bytes before. What
// is refused is refused for a reason that the documentation gives, and it is
// little.
func TestLineEndsAreGits(t *testing.T) { lineEndsAreGits(t, repo.Options{}) }

// TestCommittedLineEndsAreGits: the same where the changes are committed, and
// besides git sees nothing uncommitted then.
func TestCommittedLineEndsAreGits(t *testing.T) { lineEndsAreGits(t, repo.Options{Commit: true}) }

func lineEndsAreGits(t *testing.T, o repo.Options) {
	rounds := 4
	if o.Commit {
		rounds = 2 // a commit takes some twenty runs of git
	}
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds = map[bool]int{false: 60, true: 20}[o.Commit]
	}
	for k, setup := range setups {
		t.Run(setup.name, func(t *testing.T) {
			refused, all := map[string]int{}, 0
			for seed := range rounds {
				rnd := rand.New(rand.NewPCG(uint64(seed), uint64(k)))
				c := cross(t, rnd, setup.attributes, setup.config)
				if len(c.patch) == 0 {
					continue
				}
				all++
				if code := c.compare(t, serveIn(t, o)); code != "" {
					refused[code]++
				}
			}
			t.Logf("%d patches, refused: %v", all, refused)
			for code, n := range refused {
				known := []string{"apply.attr_filter", "apply.eol_mismatch", "apply.preimage_mismatch"} // the last of files that are kept with CR LF under a plain text
				if n*4 > all*3+4 || !slices.Contains(known, code) {
					t.Errorf("%d of %d are refused as %s", n, all, code)
				}
			}
		})
	}
}

// compare holds the service against git; it returns the code of a refusal.
func (c crossed) compare(t *testing.T, s *service) string {
	t.Helper()
	want := t.TempDir()
	must(t, os.CopyFS(want, os.DirFS(c.root)))
	git(t, want, "update-index", "-q", "--refresh")
	before := files(t, c.root)
	id, err := s.Tree(t.Context(), c.root, c.patch)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Refused {
		if now := files(t, c.root); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Fatalf("refused, and the files changed")
		}
		in, err := s.Inspect(t.Context(), c.root, c.patch)
		must(t, err)
		if in.Refused == nil || in.Refused.Code != f.Code {
			t.Errorf("inspected: %v, planned: %v", in.Refused, f)
		}
		return f.Code
	}
	must(t, err)
	_, err = gitIn(t, want, c.patch, "apply", "--index", "-")
	must(t, err)
	if tree := git(t, want, "write-tree"); tree != id {
		t.Fatalf("the tree is %s, git has %s, for\n%q", id, tree, c.patch)
	}
	changed, err := s.apply(t, c.root, c.patch)
	must(t, err)
	if got, want := files(t, c.root), files(t, want); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the files are\n%q\ngit has\n%q", got, want)
	}
	space, err := s.Workspace(t.Context(), c.root)
	must(t, err)
	committed := func(id string) {
		if status := git(t, c.root, "status", "--porcelain"); space.Commits() && (status != "" || git(t, c.root, "rev-parse", "HEAD^{tree}") != id) {
			t.Fatalf("committed, the status is\n%s", status)
		}
	}
	committed(id)
	tree := git(t, c.root, "rev-parse", "HEAD~"+map[bool]string{true: "1", false: "0"}[space.Commits()]+"^{tree}")
	if now, err := space.Candidate(t.Context(), nil); err != nil || now.ID != id {
		t.Fatalf("applied, the tree is %s (%v), was to be %s", now.ID, err, id)
	}
	back, err := s.Reverse(t.Context(), c.root, changed, nil)
	must(t, err)
	if len(back.Conflicts) > 0 {
		t.Fatalf("not as they were left: %v", back.Conflicts)
	}
	_, err = s.apply(t, c.root, back.Patch)
	if err != nil {
		t.Fatalf("%v, for the way back\n%q", err, back.Patch)
	}
	if got := files(t, c.root); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Fatalf("taken back, the files are\n%q\nthey were\n%q", got, before)
	}
	committed(tree)
	return ""
}
