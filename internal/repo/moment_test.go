package repo_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// moments are an apply of three kinds of operations, disturbed at one step.
func moments(t *testing.T, at func(root string, cancel func(), s repo.Step)) (root string, err error) {
	t.Helper()
	root = t.TempDir()
	write(t, root, "replaced", "100644 r\n")
	write(t, root, "deleted", "100644 d\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := open(t, root, repo.Options{Step: func(s repo.Step) { at(root, cancel, s) }})
	_, err = w.Apply(ctx, "TX-1", 1, repo.Plan{Changes: []patch.Change{
		change("replaced", "100644 r\n", "100644 R\n"), change("deleted", "100644 d\n", ""), change("created", "", "100644 c\n"),
	}})
	return root, err
}

// holdsExactly fails unless the root's files are these.
func holdsExactly(t *testing.T, root string, files map[string]string) {
	t.Helper()
	all, err := os.ReadDir(root)
	must(t, err)
	if len(all) != len(files)+1 { // and the state directory
		t.Errorf("%v", all)
	}
	for path, want := range files {
		if b, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v; want %q", path, b, err, want)
		}
	}
}

// What somebody writes after the plan and before the move is put back where it
// was: the apply is refused and everything else is as before.
func TestEditBeforeTheMove(t *testing.T) {
	for path, name := range map[string]string{"replaced": "replace", "deleted": "delete", "created": "create"} {
		root, err := moments(t, func(root string, _ func(), s repo.Step) {
			if s.Phase == repo.Moving && s.Name == name {
				write(t, root, path, "100644 "+theirs)
			}
		})
		if fault.CodeOf(err) != "state.third_party_edit" {
			t.Errorf("%s: %v", path, err)
		}
		want := map[string]string{"replaced": "r\n", "deleted": "d\n"}
		want[path] = theirs
		holdsExactly(t, root, want)
		if left, err := os.ReadDir(filepath.Join(root, ".roundtable/tx")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind %v %v", path, left, err)
		}
	}
}

// What somebody writes in the moment in which a path is taken back stays in
// place, and waits for a person.
func TestEditWhileTakenBack(t *testing.T) {
	for path, name := range map[string]string{"replaced": "swap", "deleted": "put", "created": "take"} {
		root, err := moments(t, func(root string, cancel func(), s repo.Step) {
			switch {
			case s.Name == "sync":
				cancel() // seen by the verification, which gives up
			case s.Phase == repo.Back && s.Name == name:
				write(t, root, path, "100644 "+theirs)
			}
		})
		if fault.CodeOf(err) != "state.needs_attention" {
			t.Errorf("%s: %v", path, err)
		}
		want := map[string]string{"replaced": "r\n", "deleted": "d\n"}
		want[path] = theirs
		holdsExactly(t, root, want)
	}
}

// What somebody writes after the move and before the marker is seen by the
// verification, and nothing is said to be applied.
func TestVerify(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	write(t, root, "b", "100644 b\n")
	w := open(t, root, repo.Options{Step: func(s repo.Step) {
		if s.Phase == repo.Verify && s.Name == "verify" {
			write(t, root, "a", "100644 "+theirs)
		}
	}})
	plan := repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 A\n"), change("b", "100644 b\n", "100644 B\n")}}
	_, err := w.Apply(ctx(t), "TX-1", 1, plan)
	if fault.CodeOf(err) != "state.needs_attention" {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a": theirs, "b": "b\n"} {
		if b, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v", path, b, err)
		}
	}
}

// Somebody moves the root away in the midst of an apply and puts a link to
// elsewhere in its place: nothing there is touched, and the tree that was
// opened is whole.
func TestRootSwapped(t *testing.T) {
	for n, reached := 1, true; reached; n += every(7) {
		t.Run("", func(t *testing.T) {
			k := newKilling(t, false)
			outside := memory(t)
			for p, s := range everyKind.files {
				write(t, outside, p, s)
			}
			must(t, os.MkdirAll(filepath.Join(outside, ".roundtable/tx"), 0o755))
			was := listing(t, outside, true)
			steps, moved := 0, k.root+".moved"
			w := k.opened(t, func(repo.Step) {
				if steps++; steps == n {
					must(t, os.Rename(k.root, moved))
					must(t, os.Symlink(outside, k.root))
				}
			})
			_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: everyKind.changes})
			reached = steps >= n
			if now := listing(t, outside, true); now != was {
				t.Errorf("step %d: the world outside was\n%s\nis\n%s", n, was, now)
			}
			if reached {
				if _, again := w.Apply(ctx(t), "TX-2", 1, repo.Plan{Changes: everyKind.changes}); fault.CodeOf(again) != "workspace.moved" {
					t.Errorf("step %d: applied to a folder that is elsewhere: %v", n, again)
				}
				must(t, os.Remove(k.root))
				must(t, os.Rename(moved, k.root))
			}
			if bad := k.whole(t, err); bad != nil {
				t.Errorf("step %d: %v: %v", n, err, bad)
			}
		})
	}
}
