package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/kernel"
	"roundtable/internal/patch"
)

// A refMove is the step of a branch by which a transaction is committed.
type refMove struct {
	Ref  string `json:"ref"`
	Old  string `json:"old,omitempty"` // none: the branch had no commit
	New  string `json:"new"`
	Here bool   `json:"checked_out,omitempty"` // its files lie in the workspace, and change with it
}

// branchPlan says which branch the changes go to, and refuses what stands in
// the way: a branch that is not where it was judged, or is checked out
// somewhere else, and uncommitted work in the paths that change.
func (w *Workspace) branchPlan(ctx context.Context, p Plan, ops []operation) (*refMove, error) {
	if w.Commits() != (p.Commit != nil) {
		return nil, errors.New("repo: a plan has a commit exactly where changes are committed")
	}
	if p.Commit == nil {
		return nil, nil
	}
	t, err := w.target(ctx)
	if err != nil {
		return nil, err
	}
	if p.Commit.Parent != "" && p.Commit.Parent != t.old {
		return nil, refMoved(t.ref, p.Commit.Parent, t.old)
	}
	if err := w.elsewhere(ctx, t.ref); err != nil {
		return nil, err
	}
	m := &refMove{Ref: t.ref, Old: t.old, Here: t.here}
	if !t.here {
		return m, w.asCommitted(ctx, t.old, ops)
	}
	dirty, err := w.dirty(ctx, t.old, ops)
	if err == nil && len(dirty) > 0 {
		err = conflict("state.dirty", "changed and not committed", dirty)
	}
	return m, err
}

func refMoved(ref, old, now string) error {
	return fault.Errorf(fault.Conflict, "state.ref_moved", "%s was moved by somebody else: it is at %s and no longer at %s", ref, orNothing(now), orNothing(old)).
		With("ref", ref).With("expected", old).With("found", now)
}

func orNothing(oid string) string {
	if oid == "" {
		return "no commit"
	}
	return oid
}

// asCommitted compares the before-states with the branch's tree, where that is
// checked out nowhere.
func (w *Workspace) asCommitted(ctx context.Context, commit string, ops []operation) error {
	tree := w.treeOf(ctx, commit)
	var stale []string
	for _, op := range ops {
		s, err := tree.look(string(op.Path))
		if err != nil {
			return err
		}
		if s != op.Before && !(op.Kind == create && s.Kind == patch.Dir) {
			stale = append(stale, string(op.Path))
		}
	}
	if len(stale) > 0 {
		return conflict("state.stale", noLonger, stale)
	}
	return nil
}

// dirty returns which paths that change, or that are in their way, are not the
// same on disk, in the index and in the commit.
func (w *Workspace) dirty(ctx context.Context, commit string, ops []operation) (_ []string, err error) {
	x, err := w.privateOf(ctx, w.index)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if _, err := x.git(ctx, call{args: []string{"update-index", "-q", "--really-refresh"}, ok: []int{1}}); err != nil {
		return nil, err
	}
	disk, err := x.git(ctx, call{args: []string{"diff-files", "-z", "--name-only", "--ignore-submodules=all"}})
	if err != nil {
		return nil, err
	}
	staged, err := x.git(ctx, call{args: []string{"diff-index", "--cached", "-z", "--name-only", "--no-renames", "--ignore-submodules=all", w.treeish(commit)}})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range append(records(disk), records(staged)...) {
		if slices.ContainsFunc(ops, func(op operation) bool { return within(p, string(op.Path)) || within(string(op.Path), p) }) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// makeCommit makes the blobs, trees and the commit in the repository's own store,
// durably. Nothing refers to them yet.
func (t *tx) makeCommit(ctx context.Context, p Plan) (err error) {
	m := t.j.Ref
	x, err := t.w.privateOf(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	x.real = "all"
	if len(t.j.Ops) > few && kernel.SyncfsReports() {
		x.real = "none" // one sync for all
	}
	t.step(Prepare, "objects", "")
	if err := x.readTree(ctx, m.Old); err != nil {
		return err
	}
	tree, err := x.write(ctx, p.Changes, true)
	if err != nil {
		return err
	}
	made, err := t.onlyThese(ctx, m.Old, tree)
	if err != nil {
		return err
	}
	if p.Commit.Tree != "" && p.Commit.Tree != tree {
		return fault.Errorf(fault.Conflict, "state.untested", "the tree would be %s, which is not %s, the one that was judged", tree, p.Commit.Tree)
	}
	t.step(Prepare, "commit", "")
	out, err := x.git(ctx, call{args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, stdin: p.Commit.object(tree, m.Old)})
	if err != nil {
		return err
	}
	m.New = strings.TrimSpace(string(out))
	t.step(Prepare, "objects_sync", "")
	return t.w.syncObjects(append(made, tree, m.New), x.real == "none")
}

// onlyThese compares two trees and refuses one that differs in other paths than
// those of the transaction, or not at all. It returns the ids of what is new.
func (t *tx) onlyThese(ctx context.Context, old, tree string) (made []string, err error) {
	out, err := t.w.git(ctx, call{args: []string{"diff-tree", "-r", "-t", "-z", "--no-renames", "--no-abbrev", "--raw", t.w.treeish(old), tree}})
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, op := range t.j.Ops {
		ours[string(op.Path)] = true
	}
	fields, changed := records(out), 0
	for i := 0; i+1 < len(fields); i += 2 { // ":mode mode id id status", path
		f, p := strings.Fields(strings.TrimPrefix(fields[i], ":")), fields[i+1]
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree answers %q", fields[i])
		}
		if f[1] != "000000" {
			made = append(made, f[3])
		}
		if gone, comes := f[0] != "000000" && f[0] != "0"+modeTree, f[1] != "000000" && f[1] != "0"+modeTree; !gone && !comes {
			continue // a folder
		}
		if changed++; !ours[p] {
			return nil, fault.Errorf(fault.Refused, "path.dir_conflict", "%s would have to give way", quote(p)).With("path", p)
		}
	}
	if changed == 0 {
		return nil, fault.Errorf(fault.Refused, "apply.noop", "the commit would change nothing: git keeps what is there and what would be in the same bytes")
	}
	return made, nil
}

// object spells the commit object.
func (c Commit) object(tree, parent string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	if parent != "" {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s %s\ncommitter %s %s\n\n", c.Author, c.stamp(), c.Committer, c.stamp())
	message := strings.ToValidUTF8(strings.ReplaceAll(c.Message, "\x00", ""), "\uFFFD")
	b.WriteString(strings.TrimRight(message, "\n") + "\n")
	return b.Bytes()
}

// stamp spells the time as git does.
func (c Commit) stamp() string {
	return fmt.Sprintf("%d %s", max(c.Time.Unix(), 0), c.Time.Format("-0700"))
}

// String spells an identity as a commit has it.
func (i Identity) String() string {
	i = i.clean()
	return i.Name + " <" + i.Email + ">"
}

// clean returns an identity without what would end it, and none empty.
func (i Identity) clean() Identity {
	plain := func(s, instead string) string {
		s = strings.Map(func(r rune) rune {
			if r < ' ' || r == 127 || strings.ContainsRune("<>", r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(s, "\uFFFD"))
		if s = strings.Trim(s, " .,:;\"'\\"); s == "" {
			return instead
		}
		return s
	}
	return Identity{Name: plain(i.Name, "unknown"), Email: strings.ReplaceAll(plain(i.Email, "unknown"), " ", "")}
}

// syncObjects makes objects durable that git has just written, and any of the
// same bytes that it found there.
func (w *Workspace) syncObjects(oids []string, together bool) error {
	store := filepath.Join(w.commonDir, "objects")
	if together {
		return syncDir(store, calls.Syncfs)
	}
	dirs := map[string]bool{store: true}
	for _, oid := range oids {
		dir := filepath.Join(store, oid[:2])
		f, err := calls.OpenFile(filepath.Join(dir, oid[2:]), unix.O_RDONLY|unix.O_NOFOLLOW, 0)
		if missing(err) {
			continue // it is in a pack
		}
		if err != nil {
			return pathError(store, err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return pathError(store, err)
		}
		dirs[dir] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := syncDir(dir, func(fd int) error { return calls.Fsync(fd, dir) }); err != nil {
			return err
		}
	}
	return nil
}

// syncDir opens a folder of the repository and syncs it.
func syncDir(dir string, sync func(fd int) error) error {
	fd, err := calls.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError(dir, err)
	}
	return pathError(dir, errors.Join(sync(fd), calls.Close(fd)))
}

// moveRef moves the branch: the commit point. moved false means that it is
// where it was and stays there.
func (t *tx) moveRef(ctx context.Context, c Commit) (moved bool, err error) {
	ctx = context.WithoutCancel(ctx)
	m := *t.j.Ref
	t.step(Verify, "ref", "")
	if m.Here {
		head, err := t.w.symbolic(ctx)
		if err == nil && head != m.Ref {
			err = fault.Errorf(fault.Conflict, "state.ref_moved", "somebody checked out something else than %s meanwhile", m.Ref).With("ref", m.Ref)
		}
		if err != nil {
			return false, err
		}
	}
	old := m.Old
	if old == "" {
		old = strings.Repeat("0", len(m.New))
	}
	by := c.Committer.clean()
	_, failed := t.w.git(ctx, call{
		args:   []string{"update-ref", "--no-deref", "-m", "roundtable: " + t.id, m.Ref, m.New, old},
		config: []setting{{"core.filesRefLockTimeout", fmt.Sprint(t.w.o.LockWait.Milliseconds())}},
		env:    []string{"GIT_COMMITTER_NAME=" + by.Name, "GIT_COMMITTER_EMAIL=" + by.Email, "GIT_COMMITTER_DATE=" + c.stamp()},
		holds:  t.w.lock,
	})
	now, is, err := t.w.branchPosition(ctx, m)
	switch {
	case err != nil:
		return true, errors.Join(err, failed) // nobody knows
	case is == AtAfter:
		return true, t.syncRef(m)
	case is == AtOther:
		return false, refMoved(m.Ref, m.Old, now)
	case failed != nil && strings.Contains(failed.Error(), "File exists"):
		return false, fault.Errorf(fault.Unavailable, "state.locked", "another program holds git's lock on %s", m.Ref).With("ref", m.Ref)
	case failed == nil:
		failed = refMoved(m.Ref, m.Old, now) // and moved back at once
	}
	return false, failed
}

// syncRef makes the branch's new place durable: the folders of its file, up to
// the repository's.
func (t *tx) syncRef(m refMove) error {
	t.step(Verify, "ref_sync", "")
	for dir := t.w.folderOfRef(m.Ref); ; dir = filepath.Dir(dir) {
		err := syncDir(dir, func(fd int) error { return calls.Fsync(fd, dir) })
		if err != nil && !missing(err) {
			return err
		}
		if dir == t.w.commonDir || len(dir) <= len(t.w.commonDir) {
			return nil
		}
	}
}
