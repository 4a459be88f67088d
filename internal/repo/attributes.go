package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// CheckAttributes refuses, as apply.attr_filter, changes to paths whose bytes
// git would convert between the work tree and its objects, under the person's
// own configuration. Line ends are judged by the bytes: where there is no CR LF
// and none would be made, nothing is converted.
func (w *Workspace) CheckAttributes(ctx context.Context, changes []patch.Change) error {
	if !w.Git() || len(changes) == 0 {
		return nil
	}
	byPath, err := w.attributes(ctx, pathsOf(changes))
	if err != nil {
		return err
	}
	tree, err := w.Tree(ctx)
	if err != nil {
		return err
	}
	line := lineEnds{autocrlf: w.setting("core.autocrlf"), eol: w.setting("core.eol")}
	var bad []string
	why := ""
	for _, c := range changes {
		reason := converts(byPath[c.Path])
		if reason == "" && (c.Before.Kind == patch.File || c.After.Kind == patch.File) {
			if reason, err = convertsLines(tree, c, line.of(byPath[c.Path])); err != nil {
				return err
			}
		}
		if reason != "" {
			bad = append(bad, c.Path)
			why = reason
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return fault.Errorf(fault.Refused, "apply.attr_filter", "git converts what lies at %s (%s), which is not supported yet", quoteAll(bad), why).
		With("paths", bad).With("path", bad[0])
}

func pathsOf(changes []patch.Change) (paths []string) {
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// setting returns what the person's configuration says.
func (w *Workspace) setting(name string) string {
	for _, s := range slices.Backward(w.settings) {
		if s.name == name {
			return s.value
		}
	}
	return ""
}

// attributes asks once for all paths.
func (w *Workspace) attributes(ctx context.Context, paths []string) (map[string]map[string]string, error) {
	var in bytes.Buffer
	for _, p := range paths {
		in.WriteString(p + "\x00")
	}
	ask := call{user: true, stdin: in.Bytes(), args: []string{"check-attr", "-z", "--stdin", "text", "eol", "filter", "ident", "working-tree-encoding"}}
	var out []byte
	var err error
	if w.Commits() {
		out, err = w.committedAttributes(ctx, paths, ask)
	} else {
		out, err = w.git(ctx, ask)
	}
	if err != nil {
		return nil, err
	}
	fields := records(out)
	if len(fields) != 3*5*len(paths) {
		return nil, fmt.Errorf("git check-attr answers %d fields for %d paths", len(fields), len(paths))
	}
	byPath := map[string]map[string]string{}
	for f := range slices.Chunk(fields, 3) {
		if byPath[f[0]] == nil {
			byPath[f[0]] = map[string]string{}
		}
		byPath[f[0]][f[1]] = f[2]
	}
	return byPath, nil
}

// committedAttributes asks by the attribute files of the branch's tree, not by
// those that lie on disk.
func (w *Workspace) committedAttributes(ctx context.Context, paths []string, ask call) (out []byte, err error) {
	tree, _, err := w.branch(ctx)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	seen := map[string]bool{}
	for _, p := range paths {
		for dir := path.Dir(p); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			name := path.Join(dir, ".gitattributes")
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
	ask.args = append([]string{ask.args[0], "--cached"}, ask.args[1:]...)
	return x.git(ctx, ask)
}

// converts names the attribute by which anything but line ends is converted.
func converts(attrs map[string]string) string {
	for _, name := range []string{"filter", "ident", "working-tree-encoding"} {
		if v := attrs[name]; v != "unspecified" && v != "unset" {
			return name + "=" + v
		}
	}
	return ""
}

// lineEnds is what the configuration says of them.
type lineEnds struct{ autocrlf, eol string }

// A conversion of line ends that a path is under.
type conversion struct {
	reason  string // for people; empty if there is none
	crlf    bool   // the work tree is to have CR LF
	byLooks bool   // only where the bytes look like text
}

// of works out what git does with a path's line ends.
func (l lineEnds) of(attrs map[string]string) conversion {
	text, eol := attrs["text"], attrs["eol"]
	var c conversion
	switch {
	case text == "unset":
		return c
	case text == "auto":
		c = conversion{reason: "text=auto", byLooks: true}
	case text == "set" || eol == "lf" || eol == "crlf":
		c = conversion{reason: "text"}
	case l.autocrlf == "true" || l.autocrlf == "input":
		c = conversion{reason: "core.autocrlf=" + l.autocrlf, byLooks: true}
	default:
		return c
	}
	switch {
	case eol == "lf" || eol == "crlf":
		c.crlf, c.reason = eol == "crlf", c.reason+" eol="+eol
	case l.autocrlf == "true":
		c.crlf = true
	case l.autocrlf != "input":
		c.crlf = l.eol == "crlf"
	}
	return c
}

// convertsLines says why the bytes of a change would be converted, before or
// after it; nothing if they would not.
func convertsLines(tree patch.Tree, c patch.Change, conv conversion) (string, error) {
	if conv.reason == "" {
		return "", nil
	}
	images := [][]byte{nil, nil}
	if c.After.Kind == patch.File {
		images[0] = c.Content
	}
	if c.Before.Kind == patch.File {
		b, err := tree.Read(c.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		images[1] = b
	}
	for _, b := range images {
		if conv.byLooks && bytes.IndexByte(b, 0) >= 0 {
			continue // git takes it for binary
		}
		if conv.crlf && bytes.IndexByte(b, '\n') >= 0 || bytes.Contains(b, []byte("\r\n")) {
			return conv.reason, nil
		}
	}
	return "", nil
}
