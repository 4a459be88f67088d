package patch_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

var seedFlag = flag.Uint64("seed", 0, "first seed of the comparisons with git; 0: their own")

// roundsFrom gives how many rounds to run, fewer in ordinary tests, and the
// first seed.
func roundsFrom(quick, long int, seed uint64) (int, uint64) {
	if *seedFlag > 0 {
		seed = *seedFlag
	}
	if os.Getenv("ROUNDTABLE_LONG") == "1" {
		return long, seed
	}
	return quick, seed
}

// A repo is a real Git repository, the oracle.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine")
	}
	r := repo{t, t.TempDir()}
	r.must(nil, "init", "-q")
	return r
}

func (r repo) git(stdin []byte, args ...string) ([]byte, error) {
	c := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c", "core.fsync=none"}, args...)...)
	c.Dir = r.dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
	c.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out, err
}

func (r repo) must(stdin []byte, args ...string) []byte {
	r.t.Helper()
	out, err := r.git(stdin, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// store makes the work tree and index this tree and gives its id.
func (r repo) store(t map[string]file) string {
	r.t.Helper()
	names, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range names {
		if n.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.dir, n.Name())); err != nil {
			r.t.Fatal(err)
		}
	}
	for p, x := range t {
		full := filepath.Join(r.dir, p)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		switch {
		case err != nil:
		case x.mode == "120000":
			err = os.Symlink(x.data, full)
		case x.mode == "100755":
			err = os.WriteFile(full, []byte(x.data), 0o755)
		default:
			err = os.WriteFile(full, []byte(x.data), 0o644)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.must(nil, "add", "-A")
	return strings.TrimSpace(string(r.must(nil, "write-tree")))
}

// index spells the index as listing does.
func (r repo) index() string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimSuffix(string(r.must(nil, "ls-files", "-s", "-z")), "\x00"), "\x00") {
		if head, p, ok := strings.Cut(l, "\t"); ok {
			f := strings.Fields(head)
			fmt.Fprintf(&b, "%s %s %q\n", f[0], f[1], p)
		}
	}
	return b.String()
}

// applyTo takes the tree with this id through git apply --index.
func (r repo) applyTo(tree string, data []byte, args ...string) error {
	r.must(nil, "read-tree", "-u", "--reset", tree)
	_, err := r.git(data, append([]string{"apply", "--index", "--whitespace=nowarn"}, args...)...)
	return err
}

// A made patch is one that git wrote, with what it takes to apply it.
type made struct {
	data  []byte
	args  []string // for git apply
	o     patch.Options
	named string // how it was made
	bare  bool   // without prefixes
}

// diff makes a patch from commit a to commit b, which follows it, with random
// options.
func (r repo) diff(f forest, a, b string) made {
	m := made{}
	opts := []string{"--binary"}
	maybe := func(of ...string) {
		if f.IntN(4) == 0 {
			opts = append(opts, strings.Fields(f.pick(of...))...)
		}
	}
	maybe("--full-index", "--abbrev=4", "--abbrev=12")
	maybe("-U1", "-U10", "-U0", "-W", "--inter-hunk-context=3")
	maybe("-M", "-C --find-copies-harder", "-B", "-B -M", "--no-renames", "-M30%")
	maybe("--patience", "--histogram", "--minimal")
	maybe("--text")
	switch f.IntN(10) {
	case 0:
		opts, m.args, m.bare = append(opts, "--no-prefix"), []string{"-p0"}, true
	case 1:
		opts = append(opts, "--src-prefix=i/", "--dst-prefix=w/")
	case 2:
		// Without renames: git apply takes a component from the names of a
		// rename even so, and then renames other files than were meant.
		two := 2
		opts = slices.DeleteFunc(opts, func(o string) bool { return o == "--find-copies-harder" }) // it brings renames back
		opts, m.args, m.o.Strip = append(opts, "--src-prefix=x/a/", "--dst-prefix=x/b/", "--no-renames"), []string{"-p2"}, &two
	}
	if m.bare && f.IntN(2) == 0 {
		m.o.Strip = new(int)
	}
	for _, o := range opts {
		if o == "-U0" {
			m.args = append(m.args, "--unidiff-zero")
		}
	}
	pre := []string{"-c", "core.quotePath=" + f.pick("true", "false")}
	var cmd []string
	switch f.IntN(6) {
	case 0, 1:
		cmd = append(append([]string{"format-patch", "--stdout", "-1"}, opts...), b)
		if f.IntN(2) == 0 {
			cmd = append(append([]string{"show", f.pick("--stat", "--no-color"), "-p"}, opts...), b)
		}
	case 2:
		cmd = append(append([]string{"diff", "-R"}, opts...), b, a)
	default:
		cmd = append(append([]string{"diff"}, opts...), a, b)
	}
	m.data, m.named = r.must(nil, append(pre, cmd...)...), strings.Join(cmd, " ")
	return m
}

// planted stores trees in one run of git, each second one as a commit that
// follows the one before, and gives the commits and their trees.
func (r repo) planted(trees []map[string]file) (commits, ids []string) {
	r.t.Helper()
	var b bytes.Buffer
	for i, t := range trees {
		const message = "two\n\nbody\n"
		fmt.Fprintf(&b, "commit refs/planted/%06d\nmark :%d\ncommitter A <a@example.com> 1700000000 +0000\ndata %d\n%s\n", i, i+1, len(message), message)
		if i%2 == 1 {
			fmt.Fprintf(&b, "from :%d\n", i)
		}
		b.WriteString("deleteall\n")
		for p, x := range t {
			quoted := patch.Quote(p)
			if !strings.HasPrefix(quoted, `"`) {
				quoted = `"` + quoted + `"`
			}
			fmt.Fprintf(&b, "M %s inline %s\ndata %d\n%s\n", x.mode, quoted, len(x.data), x.data)
		}
		b.WriteString("\n")
	}
	r.must(b.Bytes(), "fast-import", "--quiet", "--force")
	both := strings.Fields(string(r.must(nil, "for-each-ref", "--format=%(objectname) %(tree)", "refs/planted", "--sort=refname")))
	if len(both) < 2*len(trees) {
		r.t.Fatalf("%d of %d trees are there", len(both)/2, len(trees))
	}
	for i := range trees {
		commits, ids = append(commits, both[2*i]), append(ids, both[2*i+1])
	}
	return commits, ids
}

// A tally counts what rounds of the comparison with git came to.
type tally struct{ rounds, applied, ambiguous, refusedByGit, kept int }

// TestGit takes random changes that git writes down through both engines:
// what git apply --index gives, we give, byte and mode; and what we write
// down, git takes.
func TestGit(t *testing.T) {
	t.Parallel()
	rounds, seed := roundsFrom(1000, 20_000, 1)
	var parts [4]tally
	share := rounds / len(parts)
	t.Run("rounds", func(t *testing.T) {
		for k := range parts {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel()
				parts[k].run(t, share, seed+uint64(k*share))
			})
		}
	})
	var all tally
	for _, p := range parts {
		all = tally{all.rounds + p.rounds, all.applied + p.applied, all.ambiguous + p.ambiguous, all.refusedByGit + p.refusedByGit, all.kept + p.kept}
	}
	t.Logf("%d rounds: %d applied alike, %d ambiguous without prefix, %d refused by git, %d that do not tell the way back", all.rounds, all.applied, all.ambiguous, all.refusedByGit, all.kept)
	if all.kept > rounds/10 {
		t.Errorf("%d of %d patches could not be undone", all.kept, rounds)
	}
	if all.applied < rounds*8/10 {
		t.Errorf("only %d of %d rounds compared anything", all.applied, rounds)
	}
}

func (g *tally) run(t *testing.T, rounds int, seed uint64) {
	r := newRepo(t)
	const batch = 100
	for from := 0; from < rounds && !t.Failed(); from += batch {
		var forests []forest
		var trees []map[string]file
		for i := from; i < min(from+batch, rounds); i++ {
			f := newForest(seed + uint64(i))
			old := f.tree()
			forests, trees = append(forests, f), append(trees, old, f.change(old))
		}
		commits, ids := r.planted(trees)
		for i, f := range forests {
			g.rounds++
			if ids[2*i] != ids[2*i+1] {
				g.round(t, r, seed+uint64(from+i), f, trees[2*i], commits[2*i], commits[2*i+1])
			}
		}
		if os.Getenv("ROUNDTABLE_LONG") == "1" && g.rounds%1000 == 0 {
			t.Logf("%d rounds, %d applied alike", g.rounds, g.applied)
		}
	}
}

// round compares one change, from the tree old, which is commit a, to commit b.
func (g *tally) round(t *testing.T, r repo, seed uint64, f forest, old map[string]file, a, b string) {
	m := r.diff(f, a, b)
	if err := r.applyTo(a, m.data, m.args...); err != nil {
		g.refusedByGit++
		return
	}
	want := r.index()
	tree := mapTree(old)
	res, err := apply(m.data, m.o, tree)
	var refusal *patch.Refusal
	if errors.As(err, &refusal) && refusal.Class == patch.StripAmbiguous && m.bare {
		g.ambiguous++
		return
	}
	if err != nil {
		t.Errorf("seed %d: git %s: %v\n%s", seed, m.named, err, m.data)
		return
	}
	g.applied++
	canonical := roundTrip(t, res, tree)
	tree.Apply(res)
	if !undoes(t, m, tree, old) {
		g.kept++
	}
	if got := listing(files(tree)); got != want {
		t.Errorf("seed %d: git %s: we have\n%sgit has\n%s%s", seed, m.named, got, want, m.data)
	}
	if seed%3 > 0 {
		return
	}
	if err := r.applyTo(a, canonical); err != nil {
		t.Errorf("seed %d: git does not take what we write: %v\n%s", seed, err, canonical)
	} else if got := r.index(); got != want {
		t.Errorf("seed %d: what we write gives git\n%swant\n%s%s", seed, got, want, canonical)
	}
}

// undoes takes the patch back from the tree after it alone, which must give the
// tree before; false if that is refused.
func undoes(t testing.TB, m made, after *patch.MapTree, old map[string]file) bool {
	t.Helper()
	back, err := undone(t, m.data, m.o, mapTree(files(after)))
	var refusal *patch.Refusal
	if errors.As(err, &refusal) {
		t.Logf("git %s: %v", m.named, err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := listing(files(back)), listing(old); got != want {
		t.Errorf("git %s is taken back to\n%swas\n%s%s", m.named, got, want, m.data)
	}
	return true
}

func apply(data []byte, o patch.Options, tree patch.Tree) (*patch.Result, error) {
	p, err := patch.Parse(data, o)
	if err != nil {
		return nil, err
	}
	return patch.Apply(p, tree)
}

// roundTrip checks that the reverse of the result takes the tree after back to
// the one before, and that the canonical patch of the result, which it
// returns, gives the same result.
func roundTrip(t testing.TB, res *patch.Result, before *patch.MapTree) []byte {
	t.Helper()
	old := listing(files(before))
	after := mapTree(files(before))
	after.Apply(res)
	back, err := patch.Reverse(res, before)
	if err != nil {
		t.Fatal(err)
	}
	undo, err := apply(back, patch.Options{}, after)
	if err != nil {
		t.Fatalf("the reverse does not apply: %v\n%s", err, back)
	}
	undone := mapTree(files(after))
	undone.Apply(undo)
	if got := listing(files(undone)); got != old {
		t.Fatalf("the reverse gives\n%swant\n%s%s", got, old, back)
	}
	images, err := patch.Images(res.Changes, before)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := patch.Format(images, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := apply(canonical, patch.Options{}, before)
	if err != nil {
		t.Fatalf("the canonical patch does not apply: %v\n%s", err, canonical)
	}
	if a, b := patch.AfterDigest(res.Changes), patch.AfterDigest(again.Changes); a != b && len(images) == len(again.Changes) {
		t.Fatalf("the canonical patch gives another tree:\n%s", canonical)
	}
	return canonical
}
