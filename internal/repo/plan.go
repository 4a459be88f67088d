package repo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A planned journal still knows the bytes of its after-images.
type planned struct {
	journal
	content [][]byte // by operation, as they are to lie
	kept    [][]byte // the same as git keeps them, where the branch is checked out here
	notes   []Note
}

// plan compares the before-states with the disk and works out the operations
// and the folders. It changes nothing.
func (w *Workspace) plan(ctx context.Context, tx string, attempt int, p Plan) (planned, error) {
	out := planned{journal: journal{Version: journalVersion, Tx: tx, Attempt: attempt}}
	changes := slices.Clone(p.Changes)
	slices.SortFunc(changes, func(a, b patch.Change) int { return cmp.Compare(a.Path, b.Path) })
	for _, c := range changes {
		op, err := w.operation(c)
		if err != nil {
			return out, err
		}
		out.Ops, out.content = append(out.Ops, op), append(out.content, c.Content)
	}
	if err := consistent(out.Ops); err != nil {
		return out, err
	}
	var err error
	if out.Ref, err = w.branchPlan(ctx, p, out.Ops); err != nil || len(out.moves()) == 0 {
		return out, err
	}
	if err := w.checkedOut(ctx, out.moves()); err != nil {
		return out, err
	}
	if out.Ref != nil {
		if err := w.asCheckedOut(ctx, &out); err != nil {
			return out, err
		}
	}
	links, err := w.gitlinks(ctx)
	if err != nil {
		return out, err
	}
	var stale []string
	for _, op := range out.Ops {
		if dir, is, err := w.nested(string(op.Path), links); err != nil {
			return out, err
		} else if is {
			return out, fault.Errorf(fault.Refused, "path.dir_conflict", "%q lies in %q, a repository of its own", op.Path, dir).With("path", string(op.Path))
		}
		ok, note, err := w.asBefore(ctx, op)
		if err != nil {
			return out, err
		}
		if !ok {
			stale = append(stale, string(op.Path))
		}
		if note != "" {
			out.notes = append(out.notes, Note{string(op.Path), note})
		}
	}
	if len(stale) == 0 {
		stale, err = w.folders(&out.journal)
	}
	if err == nil && len(stale) > 0 {
		err = conflict("state.stale", "not as the proposal expects them", stale)
	}
	return out, err
}

// conflict is the fault for paths that are not as they should be.
func conflict(code, what string, paths []string) *fault.Error {
	return fault.Errorf(fault.Conflict, code, "paths are %s: %s", what, quoteAll(paths)).With("paths", paths)
}

func quoteAll(paths []string) string {
	const most = 5
	var b strings.Builder
	for i, p := range paths {
		if i == most {
			b.WriteString(" and others")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(p))
	}
	return b.String()
}

// operation checks a change and says what it does. A folder that gives way to
// the path, or the reverse, counts as nothing: the paths in it are changes of
// their own.
func (w *Workspace) operation(c patch.Change) (operation, error) {
	bad := func(code, why string) (operation, error) {
		return operation{}, fault.Errorf(fault.Refused, code, "%s: %s", quote(c.Path), why).With("path", c.Path)
	}
	if code, why := w.changeable(c.Path); why != "" {
		return bad(code, why)
	}
	op := operation{Path: name(c.Path), Before: c.Before, After: c.After}
	nothing := patch.State{Kind: patch.Absent}
	if op.Before.Kind == patch.Dir {
		op.Before = nothing
	}
	if op.After.Kind == patch.Dir {
		op.After = nothing
	}
	if op.After.Kind == patch.Special || op.Before.Kind == patch.Special {
		return bad("path.special_file", "is a special file")
	}
	switch there, then := op.Before != nothing, op.After != nothing; {
	case op.Before == op.After:
		return bad("apply.noop", "does not change")
	case !there:
		op.Kind = create
	case !then:
		op.Kind = remove
	default:
		op.Kind = replace
	}
	if sum := sha256.Sum256(c.Content); op.After != nothing && (op.After.SHA256 != hex.EncodeToString(sum[:]) || op.After.Size != int64(len(c.Content))) {
		return operation{}, fmt.Errorf("%s: the content is not that of the after-state", quote(c.Path))
	}
	if (op.After.Kind == patch.Symlink) != (op.After.Mode == "120000") ||
		(op.After.Kind == patch.File) != (op.After.Mode == "100644" || op.After.Mode == "100755") {
		return bad("parse.bad_mode", "kind and mode of the after-state do not agree")
	}
	return op, nil
}

// changeable says why a path can never be changed; nothing if it can.
func (w *Workspace) changeable(rel string) (code, why string) {
	switch {
	case !clean(rel) || len(rel) > 4000:
		return "path.not_canonical", "is no canonical relative path"
	case !w.ours(rel):
		return "path.reserved", "is not the workspace's to change"
	}
	return "", ""
}

// consistent refuses a path given twice, and a file below a file.
func consistent(ops []operation) error {
	if len(ops) == 0 {
		return fault.Errorf(fault.Refused, "apply.noop", "nothing is to be changed")
	}
	if len(ops) > 1_000_000 { // slots have six digits
		return fault.Errorf(fault.TooLarge, "limit.files", "%d paths are more than one transaction takes", len(ops))
	}
	stays := map[string]bool{}
	for i, op := range ops {
		if i > 0 && ops[i-1].Path == op.Path {
			return fault.Errorf(fault.Refused, "parse.duplicate_path", "%s is changed twice", quote(string(op.Path)))
		}
		stays[string(op.Path)] = op.Kind != remove
	}
	for _, op := range ops {
		for dir := path.Dir(string(op.Path)); op.Kind != remove && dir != "."; dir = path.Dir(dir) {
			if stays[dir] {
				return fault.Errorf(fault.Refused, "path.dir_conflict", "%s would lie below the file %s", quote(string(op.Path)), quote(dir))
			}
		}
	}
	return nil
}

// asBefore says whether a path is in the state that its operation relies on. A
// folder may lie where a file is made; whether it goes away is judged later.
func (w *Workspace) asBefore(ctx context.Context, op operation) (ok bool, note string, err error) {
	p, err := w.at.parent(string(op.Path))
	if gone(err) {
		return op.Kind == create, "", nil
	}
	if err != nil {
		return false, "", pathError(string(op.Path), err)
	}
	s, err := p.look(ctx)
	if _, st, err2 := p.stat(); err2 == nil && op.Kind == replace && op.Before.Kind == patch.File && st.Nlink > 1 {
		note = "hardlink_broken"
	}
	ok = s == op.Before || op.Kind == create && s.Kind == patch.Dir
	return ok, note, pathError(string(op.Path), errors.Join(err, p.close()))
}

// folders fills in which folders are made and which are emptied. It returns
// the paths whose folder cannot be.
func (w *Workspace) folders(j *journal) (stale []string, err error) {
	made, gone := map[string]bool{}, map[string]bool{}
	filled := map[string]bool{} // folders below which something is made
	for _, op := range j.Ops {
		if op.Kind == remove {
			gone[string(op.Path)] = true
			continue
		}
		for dir := path.Dir(string(op.Path)); dir != "."; dir = path.Dir(dir) {
			filled[dir] = true
		}
	}
	for _, op := range j.Ops {
		if op.Kind != create {
			continue
		}
		ok, err := w.makeable(string(op.Path), gone, made)
		if err != nil {
			return nil, err
		}
		if !ok {
			stale = append(stale, string(op.Path))
		}
	}
	emptied, err := w.emptied(j.Ops, gone, filled)
	if err != nil {
		return nil, err
	}
	j.Made = names(slices.Sorted(maps.Keys(made))) // a parent sorts before what is in it
	j.Emptied = emptied
	for _, op := range j.Ops {
		if op.Kind != create {
			continue
		}
		s, err := w.kindAt(string(op.Path))
		if err != nil {
			return nil, err
		}
		if s.Kind == patch.Dir && !slices.ContainsFunc(emptied, func(f folder) bool { return f.Path == op.Path }) {
			stale = append(stale, string(op.Path))
		}
	}
	slices.Sort(stale)
	return slices.Compact(stale), nil
}

// makeable collects the folders that a new path needs. It says no where a file
// or link that stays is in the way.
func (w *Workspace) makeable(rel string, gone, made map[string]bool) (bool, error) {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		s, err := w.kindAt(dir)
		switch {
		case err != nil:
			return false, err
		case s.Kind == patch.Dir:
			return true, nil
		case s.Kind != patch.Absent && !gone[dir]:
			return false, nil
		}
		made[dir] = true
	}
	return true, nil
}

func (w *Workspace) kindAt(rel string) (patch.State, error) {
	p, err := w.at.parent(rel)
	if gone(err) {
		return patch.State{Kind: patch.Absent}, nil
	}
	if err != nil {
		return patch.State{}, pathError(rel, err)
	}
	s, _, err := p.stat()
	return s, pathError(rel, errors.Join(err, p.close()))
}

// emptied returns the folders, deepest first, in which nothing stays.
func (w *Workspace) emptied(ops []operation, gone, filled map[string]bool) ([]folder, error) {
	maybe := map[string]bool{}
	for _, op := range ops {
		for dir := path.Dir(string(op.Path)); op.Kind == remove && dir != "." && !filled[dir]; dir = path.Dir(dir) {
			maybe[dir] = true
		}
	}
	var out []folder
	empty := maps.Clone(gone)
	for _, dir := range slices.Backward(slices.SortedFunc(maps.Keys(maybe), byDepth)) {
		fd, err := w.at.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, pathError(dir, err)
		}
		f, err := folderOf(dir, fd)
		if err != nil {
			return nil, pathError(dir, errors.Join(err, calls.Close(fd)))
		}
		left, err := namesIn(fd)
		if err != nil {
			return nil, pathError(dir, err)
		}
		if !slices.ContainsFunc(left, func(n string) bool { return !empty[dir+"/"+n] }) {
			empty[dir] = true
			out = append(out, f)
		}
	}
	return out, nil
}

func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
}

// folderOf records what a remade folder needs.
func folderOf(rel string, fd int) (folder, error) {
	var st unix.Stat_t
	if err := calls.Fstat(fd, &st); err != nil {
		return folder{}, err
	}
	attrs, err := xattrs(fd)
	return folder{Path: name(rel), Perm: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid), Xattrs: attrs}, err
}

// quote shows a path with control, bidi and invisible characters escaped.
func quote(rel string) string { return strconv.Quote(rel) }
