package domain

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A Resource is something that can be claimed: a file, or a directory with all
// beneath it. The directory with the empty path is the whole tree.
type Resource struct {
	Kind string // "file" or "directory"
	Path string // relative, slash-separated, clean, NFC
}

// ParseResource reads an id of the form kind:path. An id that is not spelled
// canonically is refused, with the canonical spelling named.
func ParseResource(id string) (Resource, error) {
	kind, p, ok := strings.Cut(id, ":")
	bad := func(format string, args ...any) error {
		return fault.Errorf(fault.Invalid, "invalid_resource", format, args...).At("/resource_id", "file:<path> or directory:<path>")
	}
	switch {
	case !ok:
		return Resource{}, bad("resource id %.200q has no kind: write file:%s or directory:%s", id, id, id)
	case kind == "symbol":
		return Resource{}, fault.Errorf(fault.Refused, "symbol_unsupported", "symbols cannot be claimed in this version: claim the file")
	case kind != "file" && kind != "directory":
		return Resource{}, bad("resource id %.200q has the unknown kind %q", id, kind)
	case p == "" && kind == "directory":
		return Resource{Kind: kind}, nil
	case p == "":
		return Resource{}, bad("resource id %.200q has no path", id)
	}
	r := Resource{kind, p}
	return r, r.check(id)
}

// check refuses a path that leaves the tree, has a canonical spelling other
// than its own, or that no patch may touch.
func (r Resource) check(id string) error {
	bad := func(format string, args ...any) error {
		return fault.Errorf(fault.Invalid, "invalid_resource", format, args...).At("/resource_id", "a path inside the repository")
	}
	if strings.HasPrefix(r.Path, "/") || strings.ContainsRune(r.Path, 0) {
		return bad("resource id %.200q: the path must be relative to the repository", id)
	}
	clean := norm.NFC.String(path.Clean(r.Path))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return bad("resource id %.200q leaves the repository", id)
	}
	switch {
	case clean == "." && r.Kind == "directory":
		return bad("resource id %.200q: the whole tree is spelled directory:", id)
	case clean == ".":
		return bad("resource id %.200q is no file", id)
	case clean != r.Path:
		return bad("resource id %.200q is spelled %.200s:%.200s", id, r.Kind, clean)
	}
	if why := patch.CheckPath(clean, patch.Options{}); why != nil {
		return bad("resource id %.200q cannot be claimed, since no patch may touch it: %s", id, why.Detail)
	}
	return nil
}

// ID returns the canonical id.
func (r Resource) ID() string { return r.Kind + ":" + r.Path }

// Contains reports whether path lies in r.
func (r Resource) Contains(path string) bool {
	if r.Kind == "directory" {
		return r.Path == "" || path == r.Path || strings.HasPrefix(path, r.Path+"/")
	}
	return path == r.Path
}

// Covers reports whether all of o lies in r.
func (r Resource) Covers(o Resource) bool {
	return r.Contains(o.Path) && (r.Kind == "directory" || o.Kind == "file")
}

// Overlaps reports whether r and o have a path in common.
func (r Resource) Overlaps(o Resource) bool { return r.Contains(o.Path) || o.Contains(r.Path) }

// FileResource is the resource of one file.
func FileResource(path string) Resource { return Resource{"file", path} }
