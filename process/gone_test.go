package process_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/repo"
)

// damages are what can become of a repository while the service has it: what
// lies at a path below its folder goes, and something else may come. The code
// is what whoever looks is told.
var damages = []struct {
	name, path string
	comes      func(name string) error
	code       string
}{
	{"root away", "", nothing, "workspace_unavailable"},
	{"another root", "", folder, "workspace.moved"},
	{".git away", ".git", nothing, "workspace_unavailable"},
	{".git empty", ".git", folder, "workspace_unavailable"},
	{"HEAD away", ".git/HEAD", nothing, "workspace_unavailable"},
	{"HEAD broken", ".git/HEAD", text("[garbage"), "workspace_unavailable"},
	{"branch broken", ".git/refs/heads/main", text("[garbage"), "workspace_unavailable"},
	{"commit missing", ".git/refs/heads/main", text(strings.Repeat("12", 20)), "state.object_missing"},
	{"objects away", ".git/objects", nothing, "workspace_unavailable"},
	{"config broken", ".git/config", text("[garbage"), "workspace_unavailable"},
	{"index broken", ".git/index", text("[garbage"), "workspace_unavailable"},
	{"index cut", ".git/index", cut, "workspace_unavailable"},
	{"index a folder", ".git/index", folder, "workspace_unavailable"},
}

func nothing(string) error { return nil }

// cut lays down the first bytes of an index that was moved away.
func cut(name string) error {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(name), "..", "..", "away"))
	if err != nil {
		return err
	}
	return os.WriteFile(name, data[:60], 0o644)
}

func folder(name string) error { return os.Mkdir(name, 0o755) }

func text(line string) func(name string) error {
	return func(name string) error { return os.WriteFile(name, []byte(line+"\n"), 0o644) }
}

// looking is everything that looks at a repository, on a transaction that was
// applied, a proposal that is open and its staged transaction.
func looking(applied, open, staged string) map[string]commands.Command {
	return map[string]commands.Command{
		"claim a file":      commands.ClaimResource{Resource: "file:c.txt", Type: "read"},
		"claim a directory": commands.ClaimResource{Resource: "directory:d", Type: "read"},
		"create":            propose(second),
		"attach":            commands.AttachPatch{Proposal: open, Expected: 1, PatchInput: commands.PatchInput{Patch: second}},
		"on a commit":       commands.AttachPatch{Proposal: open, Expected: 1, PatchInput: commands.PatchInput{Patch: second, Base: strings.Repeat("ab", 20)}},
		"rebase":            commands.AttachPatch{Proposal: open, Expected: 1, Rebase: true},
		"compensate":        commands.Compensate{Transaction: applied},
		"apply":             commands.ApplyTransaction{Transaction: staged},
		"apply a proposal":  commands.ApplyPatch{Proposal: open},
		"check":             commands.CheckRepository{},
	}
}

// TestRepositoryGone: whatever becomes of a folder or its repository, whoever
// looks at it is told so, nothing is written down, and all goes on once it is
// back.
func TestRepositoryGone(t *testing.T) {
	for mode, o := range map[string]repo.Options{"worktree": {}, "commit": {Commit: true}} {
		t.Run(mode, func(t *testing.T) {
			b := setUpBy(t, files, o)
			defer b.told()()
			stop := b.run()
			applied := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
			if tx := b.ended(applied); tx.State != domain.TxApplied {
				t.Fatalf("%+v", tx.Failure)
			}
			stop()
			open := b.ready(other)
			staged := b.must(b.as("ada"), commands.OpenTransaction{Proposal: open}).IDs["transaction"]
			for _, d := range damages {
				openings := []string{"open", "opened again"}
				if mode == "commit" || strings.HasPrefix(d.path, ".git/") && d.path != ".git/HEAD" {
					openings = openings[:1]
				}
				for _, opening := range openings {
					t.Run(d.name+", "+opening, func(t *testing.T) {
						again := opening == "opened again"
						if _, err := b.world.Workspace(t.Context(), b.root); err != nil {
							t.Fatal(err)
						}
						name, away, code := filepath.Join(b.root, d.path), filepath.Join(b.dir, "away"), d.code
						if err := errors.Join(os.Rename(name, away), d.comes(name)); err != nil {
							t.Fatal(err)
						}
						if again {
							b.closes(t)
						}
						if again && code == "workspace.moved" {
							code = "workspace_unavailable" // by what it was, which the history knows
						}
						b.refuses(t, code, looking(applied, open, staged))
						b.answers(t, code, map[string]any{"proposal_id": open, "transaction_id": applied})
						if again {
							b.closes(t)
						}
						if err := errors.Join(os.RemoveAll(name), os.Rename(away, name)); err != nil {
							t.Fatal(err)
						}
					})
				}
			}
			defer b.run()()
			if tx := b.ended(b.must(b.as("ada"), commands.ApplyTransaction{Transaction: staged}).IDs["transaction"]); tx.State != domain.TxApplied {
				t.Errorf("once it is back: %+v", tx.Failure)
			}
		})
	}
}

// closes has every workspace opened again by who next looks.
func (b *bench) closes(t *testing.T) {
	t.Helper()
	if err := b.world.Close(); err != nil {
		t.Fatal(err)
	}
}

// refuses sends every command: those that need the repository are refused with
// the code, and what is refused leaves nothing. A claim and a check need only
// the files as long as these can be known.
func (b *bench) refuses(t *testing.T, code string, all map[string]commands.Command) {
	t.Helper()
	files := map[string]bool{"claim a file": true, "claim a directory": true, "check": true}
	by := map[string]string{"apply": "ada", "apply a proposal": "ada", "compensate": "ada", "check": "ada"}
	for name, c := range all {
		before, _, err := b.store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, refused := b.Do(t.Context(), b.as(cmp.Or(by[name], "coder")), c)
		if refused == nil && files[name] {
			continue
		}
		if fault.CodeOf(refused) != code {
			t.Errorf("%s: %s: %v", name, fault.CodeOf(refused), refused)
		}
		if after, _, err := b.store.Head(t.Context()); err != nil || after != before {
			t.Errorf("%s: %d events came, %v", name, after-before, err)
		}
	}
}

// answers asks every question about a workspace that the bench can answer: it
// is answered or refused, and never by a fault of the service.
func (b *bench) answers(t *testing.T, code string, args map[string]any) {
	t.Helper()
	refused := 0
	for _, o := range b.Ops() {
		if !strings.HasPrefix(o.Route, "GET ") || !strings.Contains(o.Route, "{workspace_id}") {
			continue
		}
		in := map[string]any{}
		for name, v := range args {
			if strings.Contains(o.Route, "{"+name+"}") {
				in[name] = v
			}
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.Run(t.Context(), op.Call{Who: b.who["ada"], Workspace: b.ws}, raw)
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Errorf("%s: %v", o.Name, err)
		}
		if fault.CodeOf(err) == code {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("no question was refused with %s", code)
	}
}

// TestRepositoryGoneDuringApply: a repository that goes away while an apply is
// under way leaves it undone, or done once it is back; never half of it, and no
// lock of Git's.
func TestRepositoryGoneDuringApply(t *testing.T) {
	for _, at := range []string{"prepare objects", "apply replace", "verify index_write", "verify ref", "verify ref_sync", "finish look"} {
		t.Run(at, func(t *testing.T) {
			b := setUpBy(t, files, repo.Options{Commit: true})
			tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
			git, away := filepath.Join(b.root, ".git"), filepath.Join(b.dir, "away")
			b.disturb = func(s repo.Step) {
				if string(s.Phase)+" "+s.Name == at {
					b.disturb = nil
					if err := os.Rename(git, away); err != nil {
						t.Error(err)
					}
				}
			}
			j := enqueue(t, b)
			for err := errors.New("not tried yet"); err != nil; j.Attempt++ {
				if j.Attempt == 3 {
					t.Fatal(err)
				}
				err = b.apply.Worker().Do(t.Context(), j)
				if back := os.Rename(away, git); back != nil && !errors.Is(back, os.ErrNotExist) {
					t.Fatal(back)
				}
			}
			got, err := b.Transaction(t.Context(), tx)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{domain.TxFailed: files["a.txt"], domain.TxApplied: "one\n2\nthree\n"}[got.State]
			b.file("a.txt", want)
			if head := b.git("show", "HEAD:a.txt"); head != want {
				t.Errorf("%s, and HEAD has %q", got.State, head)
			}
			if left := b.git("status", "--porcelain"); strings.TrimSpace(left) != "?? .roundtable/" && left != "" {
				t.Errorf("%s, and git says %q", got.State, left)
			}
			if _, err := os.Lstat(filepath.Join(git, "index.lock")); err == nil {
				t.Errorf("%s, and the index is locked", got.State)
			}
			if got.State == domain.TxFailed && got.Failure.Code != "workspace_unavailable" {
				t.Errorf("%+v", got.Failure)
			}
		})
	}
}
