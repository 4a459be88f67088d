package repo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// theirs is what somebody else writes.
const theirs = "the bytes of a third party\n"

// A disturbance is what somebody else does to a path. It says whether it wrote
// bytes that must not be lost.
var disturbances = map[string]func(root, outside, path string) (wrote bool){
	"edit in place": func(root, _, path string) bool {
		full := filepath.Join(root, path)
		if fi, err := os.Lstat(full); err != nil || !fi.Mode().IsRegular() {
			return false
		}
		return os.WriteFile(full, []byte(theirs), 0) == nil
	},
	"replace": func(root, _, path string) bool {
		tmp := filepath.Join(root, "tmp-of-editor")
		if os.WriteFile(tmp, []byte(theirs), 0o600) != nil {
			return false
		}
		if os.Rename(tmp, filepath.Join(root, path)) != nil {
			os.Remove(tmp)
			return false
		}
		return true
	},
	"folder in its place": func(root, _, path string) bool {
		full := filepath.Join(root, path)
		if os.RemoveAll(full) != nil || os.Mkdir(full, 0o755) != nil {
			return false
		}
		return os.WriteFile(filepath.Join(full, "theirs"), []byte(theirs), 0o644) == nil
	},
	"remove": func(root, _, path string) bool { os.RemoveAll(filepath.Join(root, path)); return false },
	"create": func(root, _, path string) bool {
		full := filepath.Join(root, path)
		os.MkdirAll(filepath.Dir(full), 0o755)
		f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return false
		}
		_, err = f.WriteString(theirs)
		return errors.Join(err, f.Close()) == nil
	},
	"swap parent for a link": func(root, outside, path string) bool {
		dir := filepath.Dir(filepath.Join(root, path))
		if dir != root && os.Rename(dir, dir+".moved") == nil {
			os.Symlink(outside, dir)
		}
		return false
	},
}

// disturb applies with one disturbance before step n. It says whether n was
// reached.
func disturb(t *testing.T, n int, what, path string, aside bool) (reached bool) {
	t.Helper()
	t.Run("", func(t *testing.T) { reached = disturbed(t, n, what, path, aside) }) // so that its folders go at once
	return reached
}

func disturbed(t *testing.T, n int, what, path string, aside bool) bool {
	t.Helper()
	k := newKilling(t, aside)
	outside := memory(t)
	for _, c := range everyKind.changes { // what a link could lead to
		write(t, outside, filepath.Base(c.Path), "100644 outside\n")
	}
	was := listing(t, outside, true)
	steps, wrote := 0, false
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Step: func(s repo.Step) {
		// Without an exchange there is this moment in which a file that somebody
		// puts in the place of another is lost.
		window := s.Path == path && (s.Name == "replace_linked" || s.Phase == repo.Back && s.Name == "swap")
		if steps++; steps == n && !(aside && window) {
			wrote = disturbances[what](k.root, outside, path)
		}
	}})
	if k.aside {
		w.ForgetExchange()
	}
	name := fmt.Sprintf("%s %s before step %d", what, path, n)
	_, err := w.Apply(ctx(t), "TX-D", 1, repo.Plan{Changes: everyKind.changes})
	applied := err == nil
	if applied {
		err = w.Finish(ctx(t), "TX-D", 1)
	}
	reached := steps >= n
	if err != nil && !slices.Contains([]string{"state.stale", "state.third_party_edit", "state.needs_attention"}, fault.CodeOf(err)) {
		t.Errorf("%s: %v", name, err)
	}
	if wrote && !holds(t, k.root) && !holds(t, k.blobs) {
		t.Errorf("%s: their bytes are lost (%v)\n%s", name, err, listing(t, k.root, true))
	}
	if now := listing(t, outside, true); now != was {
		t.Errorf("%s: the world outside was\n%s\nis\n%s", name, was, now)
	}
	othersWhole(t, k, name, path, applied)
	_, err = w.Recover(ctx(t))
	must(t, err)
	othersWhole(t, k, name+", recovered", path, applied)
	return reached
}

// othersWhole fails unless all that was not disturbed is after, if the apply
// succeeded, else before.
func othersWhole(t *testing.T, k killing, name, path string, applied bool) {
	t.Helper()
	want := everyKind.files
	if applied {
		want = after(want, everyKind.changes)
	}
	for _, c := range everyKind.changes {
		if near(c.Path, path) {
			continue
		}
		full := filepath.Join(k.root, c.Path)
		got := ""
		if fi, err := os.Lstat(full); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(full)
			must(t, err)
			got = "120000 " + to
		} else if err == nil && fi.Mode().IsRegular() {
			b, err := os.ReadFile(full)
			must(t, err)
			got = map[bool]string{true: "100755 ", false: "100644 "}[fi.Mode()&0o100 != 0] + string(b)
		}
		if got != want[c.Path] {
			t.Errorf("%s: applied is %v, but %s is %q", name, applied, c.Path, got)
		}
	}
}

// near says whether what is done to one path reaches another.
func near(a, b string) bool {
	top := func(p string) string { first, _, _ := strings.Cut(p, "/"); return first }
	return top(a) == top(b)
}

func holds(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err2 := os.ReadFile(path)
			found, err = found || bytes.Contains(b, []byte(theirs)), err2
		}
		return err
	}))
	return found
}

func TestThirdParty(t *testing.T) {
	was := descriptors(t)
	defer func() {
		if now := descriptors(t); now > was {
			t.Errorf("%d descriptors were open, now %d", was, now)
		}
	}()
	var kinds []string
	for what := range disturbances {
		kinds = append(kinds, what)
	}
	slices.Sort(kinds)
	if os.Getenv("ROUNDTABLE_LONG") == "" {
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			what, c := kinds[rnd.IntN(len(kinds))], everyKind.changes[rnd.IntN(len(everyKind.changes))]
			disturb(t, 1+rnd.IntN(100), what, c.Path, rnd.IntN(3) == 0)
		}
		return
	}
	runs := 0
	for _, what := range kinds {
		for _, c := range everyKind.changes {
			for _, aside := range []bool{false, true} {
				for n := 1; disturb(t, n, what, c.Path, aside); n++ {
					runs++
				}
			}
		}
	}
	t.Logf("%d runs", runs)
}

// A program that still has the displaced file open writes into it after the
// exchange: its bytes are found when the transaction is finished.
func TestLateWriter(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 old\n")
	store := blobs(t, t.TempDir())
	w := open(t, root, repo.Options{Blobs: store})
	f, err := os.OpenFile(filepath.Join(root, "a"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	plan := repo.Plan{Changes: []patch.Change{change("a", "100644 old\n", "100644 new\n")}}
	_, err = w.Apply(ctx(t), "TX-L", 1, plan)
	must(t, err)
	_, err = f.WriteString(theirs)
	must(t, errors.Join(err, f.Close()))
	for range 2 {
		if err := w.Finish(ctx(t), "TX-L", 1); fault.CodeOf(err) != "state.needs_attention" {
			t.Fatalf("finished: %v", err)
		}
	}
	if m, err := w.Outcome("TX-L", 1); m != repo.Committed || err != nil {
		t.Errorf("outcome %s %v", m, err)
	}
	back := []patch.Change{change("a", "100644 new\n", "100644 old\n")}
	if _, err := w.Apply(ctx(t), "TX-M", 1, repo.Plan{Changes: back}); fault.CodeOf(err) != "state.needs_attention" {
		t.Errorf("a closed path was changed: %v", err)
	}
	r, err := w.State(ctx(t), "TX-L", 1, nil, nil)
	must(t, err)
	if r.Repository != "after" || !r.CanResolve || r.Paths[0].Stuck == "" || r.Paths[0].Slot == nil {
		t.Errorf("report %+v", r)
	}
	kept, err := w.Resolve(ctx(t), "TX-L", 1)
	must(t, err)
	if len(kept) != 1 {
		t.Fatalf("kept %v", kept)
	}
	b, err := store.Get(ctx(t), kept[0].State.SHA256)
	if err != nil || string(b) != "old\n"+theirs {
		t.Errorf("%q %v", b, err)
	}
	_, err = w.Apply(ctx(t), "TX-M", 1, repo.Plan{Changes: back})
	must(t, err)
}

// A folder that came into a slot is not thrown away by a decision to keep what
// is in place.
func TestResolveKeepsAFolder(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	full := filepath.Join(root, "a")
	w := open(t, root, repo.Options{Step: func(s repo.Step) {
		switch {
		case s.Phase == repo.Moving && s.Name == "delete": // what is deleted is a folder by now
			must(t, os.Remove(full))
			write(t, root, "a/theirs", "100644 "+theirs)
		case s.Phase == repo.Moving && s.Name == "displaced": // and its name is taken
			write(t, root, "a", "100644 more of theirs")
		}
	}})
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "")}})
	if fault.CodeOf(err) != "state.needs_attention" {
		t.Fatal(err)
	}
	_, err = w.Resolve(ctx(t), "TX-1", 1)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != "state.needs_attention" {
		t.Fatal(err)
	}
	held := filepath.Join(root, e.Context["held_at"].(string))
	if b, err := os.ReadFile(filepath.Join(held, "theirs")); err != nil || string(b) != theirs {
		t.Fatalf("%q %v", b, err)
	}
	must(t, os.Rename(held, filepath.Join(root, "rescued")))
	_, err = w.Resolve(ctx(t), "TX-1", 1)
	must(t, err)
	if left, err := os.ReadDir(filepath.Join(root, ".roundtable/tx")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// descriptors is how many files the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(all)
}

// A folder that was put in the place of a file, and taken for it, goes back
// also where nothing can be exchanged and a folder cannot be linked.
func TestFolderWithoutExchange(t *testing.T) {
	for _, path := range []string{"gone.txt", "wasfile", "empties/deep/er/only.txt"} {
		for n := 16; n < 30; n += every(3) {
			disturb(t, n, "folder in its place", path, true)
		}
	}
}
