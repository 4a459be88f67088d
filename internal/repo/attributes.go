package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// attrNames are the attributes by which git converts what lies in the work
// tree; crlf is the old spelling of text.
var attrNames = []string{"text", "crlf", "eol", "filter", "ident", "working-tree-encoding"}

// attrs are the attributes of a path; nil if nothing is said of it.
type attrs map[string]string

func (a attrs) of(name string) string {
	if v, ok := a[name]; ok {
		return v
	}
	return "unspecified"
}

// An attrCache keeps what git said of paths, each under what it was said from.
type attrCache struct {
	sync.Mutex
	of map[string]keptAttrs
}

type keptAttrs struct {
	from [sha256.Size]byte
	is   attrs
}

// maxKeptAttrs bounds how many paths' attributes are kept.
const maxKeptAttrs = 20_000

// attributes returns the attributes of paths, under the person's own
// configuration. Git is asked once, for those of which any file speaks and of
// which it did not say before; for none if there is no such file.
func (w *Workspace) attributes(ctx context.Context, paths []string) (map[string]attrs, error) {
	if w.Commits() {
		return w.committedAttributes(ctx, paths)
	}
	return w.attributesHere(ctx, paths)
}

// attributesHere is attributes by the files of the work tree.
func (w *Workspace) attributesHere(ctx context.Context, paths []string) (map[string]attrs, error) {
	s, err := w.attrSources(ctx)
	if err != nil {
		return nil, err
	}
	w.attrs.Lock()
	defer w.attrs.Unlock()
	byPath := map[string]attrs{}
	var ask []string
	from := map[string]attrSource{}
	for _, p := range paths {
		at, err := s.of(path.Dir(p))
		if err != nil {
			return nil, err
		}
		k, known := w.attrs.of[p]
		switch {
		case !at.any:
		case known && at.kept && k.from == at.sum:
			byPath[p] = k.is
		default:
			ask, from[p] = append(ask, p), at
		}
	}
	if len(ask) == 0 {
		return byPath, nil
	}
	said, err := w.checkAttr(ctx, ask, s.fromIndex)
	if err != nil {
		return nil, err
	}
	if len(w.attrs.of)+len(ask) > maxKeptAttrs || w.attrs.of == nil {
		w.attrs.of = map[string]keptAttrs{}
	}
	for p, is := range said {
		byPath[p] = is
		if from[p].kept {
			w.attrs.of[p] = keptAttrs{from[p].sum, is}
		}
	}
	return byPath, nil
}

// checkAttr asks git. Without the index, attributes in files that are not
// checked out are not seen.
func (w *Workspace) checkAttr(ctx context.Context, paths []string, index bool) (map[string]attrs, error) {
	c := call{user: true, stdin: []byte(nulEnded(paths)), args: append([]string{"check-attr", "-z", "--stdin"}, attrNames...)}
	if !index {
		c.env = []string{"GIT_INDEX_FILE=" + w.noIndex()}
	}
	out, err := w.git(ctx, c)
	if err != nil {
		return nil, err
	}
	return readAttrs(out, len(paths))
}

// committedAttributes asks by the attribute files of the branch's tree, not by
// those that lie on disk.
func (w *Workspace) committedAttributes(ctx context.Context, paths []string) (_ map[string]attrs, err error) {
	tree, _, err := w.branch(ctx)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	seen := map[string]bool{}
	for _, p := range paths {
		for dir := path.Dir(p); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			name := path.Join(dir, attributesFile)
			if e, err := tree.file(name); err != nil {
				return nil, err
			} else if e.mode != "" {
				fmt.Fprintf(&files, "%s %s\t%s\x00", e.mode, e.oid, name)
			}
		}
	}
	x, err := w.privateOf(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if _, err := x.git(ctx, call{args: []string{"update-index", "--add", "-z", "--index-info"}, stdin: files.Bytes()}); err != nil {
		return nil, err
	}
	out, err := x.git(ctx, call{user: true, stdin: []byte(nulEnded(paths)), args: append([]string{"check-attr", "--cached", "-z", "--stdin"}, attrNames...)})
	if err != nil {
		return nil, err
	}
	return readAttrs(out, len(paths))
}

// noIndex names an index that is not there: git need not read it for what the
// files say.
func (w *Workspace) noIndex() string { return filepath.Join(w.gitDir, "no-index-of-roundtable") }

func nulEnded(paths []string) string {
	var in bytes.Buffer
	for _, p := range paths {
		in.WriteString(p + "\x00")
	}
	return in.String()
}

// readAttrs reads git's answer for a number of paths.
func readAttrs(out []byte, paths int) (map[string]attrs, error) {
	fields := records(out)
	if len(fields) != 3*len(attrNames)*paths {
		return nil, fmt.Errorf("git check-attr answers %d fields for %d paths", len(fields), paths)
	}
	byPath := map[string]attrs{}
	for f := range slices.Chunk(fields, 3) {
		if f[2] == "unspecified" {
			continue
		}
		if byPath[f[0]] == nil {
			byPath[f[0]] = attrs{}
		}
		byPath[f[0]][f[1]] = f[2]
	}
	for f := range slices.Chunk(fields, 3*len(attrNames)) {
		if byPath[f[0]] == nil {
			byPath[f[0]] = nil // said: nothing
		}
	}
	return byPath, nil
}

// An attrSource is what speaks of the paths in a folder.
type attrSource struct {
	sum  [sha256.Size]byte // of the stamps of all files that may
	any  bool              // one of them is there
	kept bool              // what is read of them stays true while the sum is the same
}

// attrSources are the sources folder by folder, as they were at one moment.
type attrSources struct {
	w         *Workspace
	now       time.Time
	index     *index
	byDir     map[string]attrSource
	fromIndex bool // a file that is not checked out speaks of some path
}

// attrSources looks at the files that speak of every path.
func (w *Workspace) attrSources(ctx context.Context) (*attrSources, error) {
	settings, err := w.configured(ctx)
	if err != nil {
		return nil, err
	}
	x, err := w.tracked(ctx)
	if err != nil {
		return nil, err
	}
	s := &attrSources{w: w, now: time.Now(), index: x, byDir: map[string]attrSource{}}
	files := append(w.system("gitattributes"), filepath.Join(w.commonDir, "info", "attributes"))
	if f := settingIn(settings, "core.attributesFile"); f != "" && f != "/dev/null" {
		if !filepath.IsAbs(f) {
			f = filepath.Join(w.root, f)
		}
		files = append(files, f)
	}
	all, settled, err := stamps(files)
	if err != nil {
		return nil, err
	}
	top := attrSource{kept: settled, any: slices.ContainsFunc(all, func(s stamp) bool { return s.there })}
	top.sum = sha256.Sum256(fmt.Append(nil, settings, all))
	s.byDir[".."] = top
	return s, nil
}

// of returns what speaks of the paths in a folder; "." is the root.
func (s *attrSources) of(dir string) (attrSource, error) {
	if at, ok := s.byDir[dir]; ok {
		return at, nil
	}
	up := ".."
	if dir != "." {
		up = path.Dir(dir)
	}
	at, err := s.of(up)
	if err != nil {
		return at, err
	}
	name := path.Join(dir, attributesFile)
	file, err := stampOfLink(filepath.Join(s.w.root, filepath.FromSlash(name)))
	if err != nil {
		return at, pathError(name, errors.Unwrap(err))
	}
	if file.there {
		at.any, at.kept = true, at.kept && file.settled(s.now)
		at.sum = sha256.Sum256(fmt.Append(at.sum[:], name, file))
	}
	if regular := file.mode&0o170000 == 0o100000; !regular {
		if _, tracked := s.index.find(name); tracked { // then git reads it from there
			at.any, at.kept, s.fromIndex = true, false, true
		}
	}
	s.byDir[dir] = at
	return at, nil
}

// converts names the attribute by which anything but line ends is converted.
func (a attrs) converts() string {
	for _, name := range []string{"filter", "ident", "working-tree-encoding"} {
		if v := a.of(name); v != "unspecified" && v != "unset" {
			return name + "=" + v
		}
	}
	return ""
}
