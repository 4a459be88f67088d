package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A private index is a copy of the user's, with objects of its own: whatever
// is done with it, the repository stays as it is.
type private struct {
	w       *Workspace
	dir     string
	filters []setting
	real    string // core.fsync of objects that are written to the repository; empty: they are the private index's own
}

// An entry is one of an index.
type entry struct{ mode, oid, path string }

// private makes a private index to look at the governed tree. The caller
// closes it.
func (w *Workspace) private(ctx context.Context) (*private, error) {
	if w.Commits() {
		return w.privateOf(ctx, "")
	}
	return w.privateOf(ctx, w.index)
}

// privateOf makes a copy of an index, or an empty one.
func (w *Workspace) privateOf(ctx context.Context, index string) (*private, error) {
	if err := w.Still(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(cmp.Or(w.o.Scratch, filepath.Join(w.root, stateDir, "tmp")), "index-")
	if err != nil {
		return nil, pathError(stateDir, err)
	}
	x := &private{w: w, dir: dir}
	if err = os.Mkdir(filepath.Join(dir, "objects"), 0o700); err == nil && index != "" {
		err = copyIfThere(index, filepath.Join(dir, "index"))
	}
	if err == nil {
		x.filters, err = w.filtersOff(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *private) close() error { return os.RemoveAll(x.dir) }

// filtersOff returns the settings under which no filter that any configuration
// names is run.
func (w *Workspace) filtersOff(ctx context.Context) ([]setting, error) {
	out, err := w.git(ctx, call{args: []string{"config", "--null", "--name-only", "--get-regexp", `^filter\.`}, ok: []int{1}})
	if err != nil {
		return nil, err
	}
	var off []setting
	for _, name := range records(out) {
		driver := name[:strings.LastIndexByte(name, '.')]
		off = append(off, setting{driver + ".clean", ""}, setting{driver + ".smudge", ""},
			setting{driver + ".process", ""}, setting{driver + ".required", "false"})
	}
	return off, nil
}

// git runs git on the private index and objects.
func (x *private) git(ctx context.Context, c call) ([]byte, error) {
	c.config = slices.Concat(x.filters, []setting{{"core.fsync", cmp.Or(x.real, "none")}}, c.config)
	own := []string{"GIT_INDEX_FILE=" + filepath.Join(x.dir, "index"), "GIT_LITERAL_PATHSPECS=1"}
	if x.real == "" {
		own = append(own, "GIT_OBJECT_DIRECTORY="+filepath.Join(x.dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES="+alternate(filepath.Join(x.w.commonDir, "objects")))
	}
	c.env = append(own, c.env...)
	return x.w.git(ctx, c)
}

// fill brings the index to the governed tree: what lies on disk, or, where
// changes are committed, the branch's tree.
func (x *private) fill(ctx context.Context, objects bool) error {
	if !x.w.Commits() {
		return x.snapshot(ctx, objects)
	}
	t, err := x.w.target(ctx)
	if err != nil {
		return err
	}
	return x.readTree(ctx, t.old)
}

// readTree brings the index to a commit's tree.
func (x *private) readTree(ctx context.Context, commit string) error {
	arg := commit
	if arg == "" {
		arg = "--empty"
	}
	_, err := x.git(ctx, call{args: []string{"read-tree", arg}})
	return err
}

// alternate quotes a folder for a list that colons separate.
func alternate(dir string) string {
	if !strings.ContainsAny(dir, ":\"\\\n") {
		return dir
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(dir) + `"`
}

// snapshot brings the index to what lies on disk: tracked files, and untracked
// ones that are not ignored. Objects are written only if asked for.
func (x *private) snapshot(ctx context.Context, objects bool) error {
	x.w.moves.RLock()
	defer x.w.moves.RUnlock()
	if _, err := x.git(ctx, call{args: []string{"update-index", "-q", "--really-refresh"}, ok: []int{1}}); err != nil {
		return err
	}
	out, err := x.git(ctx, call{args: []string{"ls-files", "-z", "-t", "--modified", "--others", "--exclude-standard"}})
	if err != nil {
		return err
	}
	var gone, paths bytes.Buffer
	found := records(out)
	if len(found) > x.w.o.MaxFiles {
		return fault.Errorf(fault.TooLarge, "too_large", "the workspace has more than %d files that are new or changed", x.w.o.MaxFiles)
	}
	var tree patch.Tree
	for _, f := range found {
		tag, p, _ := strings.Cut(f, " ")
		if strings.HasSuffix(p, "/") || !x.w.ours(p) { // a slash: a nested repository
			continue
		}
		to := &paths
		if tag != "?" { // of a file of the index where a folder lies now, or behind a link, git makes an error
			if tree == nil {
				links, err := x.w.gitlinks(ctx)
				if err != nil {
					return err
				}
				tree = disk{ctx, x.w, links}
			}
			if st, err := tree.Stat(p); err != nil {
				return err
			} else if st.Kind == patch.Dir || st.Kind == patch.Absent {
				to = &gone
			}
		}
		to.WriteString(p + "\x00")
	}
	if gone.Len() > 0 {
		if _, err := x.git(ctx, call{args: []string{"update-index", "--force-remove", "-z", "--stdin"}, stdin: gone.Bytes()}); err != nil {
			return err
		}
	}
	if paths.Len() == 0 {
		return nil
	}
	args := []string{"update-index", "--add", "--remove", "--replace"}
	if !objects {
		args = append(args, "--info-only")
	}
	_, err = x.git(ctx, call{args: append(args, "-z", "--stdin"), stdin: paths.Bytes()})
	if err != nil && strings.Contains(err.Error(), "Permission denied") {
		return fault.Errorf(fault.Refused, "state.permission", "a file of the workspace cannot be read: %v", err)
	}
	return err
}

// listing returns the entries of the governed tree below a folder.
func (x *private) listing(ctx context.Context, dir string) ([]entry, error) {
	if err := x.fill(ctx, false); err != nil {
		return nil, err
	}
	return x.entries(ctx, dir)
}

// entries returns those of the index below a folder.
func (x *private) entries(ctx context.Context, dir string) ([]entry, error) {
	args := []string{"ls-files", "--stage", "-z"}
	if dir != "" {
		args = append(args, "--", dir+"/")
	}
	out, err := x.git(ctx, call{args: args})
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, r := range records(out) {
		head, path, _ := strings.Cut(r, "\t")
		fields := strings.Fields(head)
		if len(fields) != 3 {
			return nil, fmt.Errorf("git ls-files answers %q", r)
		}
		entries = append(entries, entry{fields[0], fields[1], path})
	}
	return entries, nil
}

func copyIfThere(from, to string) error {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, src.Close(), dst.Close())
}
