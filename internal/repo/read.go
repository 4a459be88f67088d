package repo

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// ReadFile returns at most limit bytes, from offset on, of a file of the
// snapshot: one that is tracked, or untracked and not ignored. Of a link it is
// the text. Anything else is a fault not_found, so that an ignored file cannot
// be told from one that is not there.
func (w *Workspace) ReadFile(ctx context.Context, path string, offset, limit int64) (FileRead, error) {
	if offset < 0 || limit < 0 {
		return FileRead{}, fault.Errorf(fault.Invalid, "invalid", "offset and limit are not negative")
	}
	missing := fault.Errorf(fault.NotFound, "not_found", "no file %q is in the workspace's tree", path)
	if !clean(path) || !w.ours(path) {
		return FileRead{}, missing
	}
	tree, err := w.Tree(ctx)
	if err != nil {
		return FileRead{}, err
	}
	s, err := tree.Stat(path)
	if err != nil {
		return FileRead{}, err
	}
	if w.Commits() && (s.Kind == patch.File || s.Kind == patch.Symlink) {
		b, err := tree.Read(path)
		from := min(offset, int64(len(b)))
		to := from + min(limit, int64(len(b))-from)
		return FileRead{State: s, Data: b[from:to], Truncated: to < int64(len(b))}, err
	}
	in, err := w.inSnapshot(ctx, path)
	if err != nil {
		return FileRead{}, err
	}
	if !in || s.Kind != patch.File && s.Kind != patch.Symlink {
		return FileRead{}, missing
	}
	p, err := w.at.parent(path)
	if gone(err) {
		return FileRead{}, missing
	}
	if err != nil {
		return FileRead{}, pathError(path, err)
	}
	r, err := p.part(ctx, offset, limit)
	if gone(err) || errors.Is(err, errNotRegular) {
		err = missing
	}
	return r, pathError(path, errors.Join(err, p.close()))
}

// part reads a part of what lies at a place.
func (p place) part(ctx context.Context, offset, limit int64) (FileRead, error) {
	if text, err := p.readlink(); err == nil {
		from := min(offset, int64(len(text)))
		to := min(from+limit, int64(len(text)))
		s := patch.State{Kind: patch.Symlink, Mode: "120000", Size: int64(len(text))}
		return FileRead{State: s, Data: text[from:to], Truncated: to < int64(len(text))}, nil
	} else if !errors.Is(err, unix.EINVAL) { // which is: no link
		return FileRead{}, err
	}
	f, st, err := p.openFile()
	if err != nil {
		return FileRead{}, err
	}
	b, err := io.ReadAll(&ctxReader{ctx, io.NewSectionReader(f, offset, limit)})
	s := patch.State{Kind: patch.File, Mode: modeOf(&st), Size: st.Size}
	return FileRead{State: s, Data: b, Truncated: offset+int64(len(b)) < st.Size}, errors.Join(err, f.Close())
}

// clean says whether a path is relative, slash separated and in its shortest
// spelling.
func clean(rel string) bool {
	if rel == "" || strings.ContainsRune(rel, 0) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool { return part == "" || part == "." || part == ".." })
}

// inSnapshot says whether a path is tracked, or untracked and not ignored.
func (w *Workspace) inSnapshot(ctx context.Context, rel string) (bool, error) {
	if !w.Git() {
		return true, nil
	}
	out, err := w.git(ctx, call{
		args: []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", rel},
		env:  []string{"GIT_LITERAL_PATHSPECS=1"},
	})
	return slices.Contains(records(out), rel), err
}

// Files returns the sorted paths of the snapshot's files and links below dir.
func (w *Workspace) Files(ctx context.Context, dir string) ([]string, error) {
	var files []string
	if !w.Git() {
		err := w.walk(ctx, dir, "", func(rel string, _ place) error {
			files = append(files, join(dir, rel))
			return nil
		})
		slices.Sort(files)
		return files, err
	}
	if w.Commits() {
		return w.committedFiles(ctx, dir)
	}
	args := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	if dir != "" {
		args = append(args, "--", dir+"/")
	}
	out, err := w.git(ctx, call{args: args, env: []string{"GIT_LITERAL_PATHSPECS=1"}})
	if err != nil {
		return nil, err
	}
	tree, err := w.Tree(ctx)
	if err != nil {
		return nil, err
	}
	all := records(out)
	slices.Sort(all)
	for _, p := range slices.Compact(all) {
		s, err := tree.Stat(p)
		if err != nil {
			return nil, err
		}
		if s.Kind == patch.File || s.Kind == patch.Symlink {
			files = append(files, p)
		}
	}
	return files, nil
}

// committedFiles is Files of the branch that is committed to.
func (w *Workspace) committedFiles(ctx context.Context, dir string) ([]string, error) {
	t, err := w.target(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"ls-tree", "-r", "-z", "--full-tree", w.treeish(t.old)}
	if dir != "" {
		args = append(args, "--", dir+"/")
	}
	out, err := w.git(ctx, call{args: args, env: []string{"GIT_LITERAL_PATHSPECS=1"}})
	var files []string
	for _, r := range records(out) {
		if head, p, ok := strings.Cut(r, "\t"); ok && !strings.HasPrefix(head, modeLink) && w.ours(p) {
			files = append(files, p)
		}
	}
	slices.Sort(files)
	return files, err
}

// IsIgnored says whether git ignores the path. In a plain folder nothing is.
func (w *Workspace) IsIgnored(ctx context.Context, path string) (bool, error) {
	if !w.Git() {
		return false, nil
	}
	if !clean(path) {
		return false, fault.Errorf(fault.Invalid, "path.not_canonical", "%q is no canonical path", path)
	}
	in, err := w.inSnapshot(ctx, path)
	if err != nil || in {
		return false, err
	}
	out, err := w.git(ctx, call{args: []string{"check-ignore", "-z", "--stdin"}, stdin: []byte(path + "\x00"), ok: []int{1}})
	return len(out) > 0, err
}
