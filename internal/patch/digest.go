package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Digest is the SHA-256 of the bytes of a patch, in lowercase hex: by it
// reviews, tests and an apply name the patch.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A PathEntry is the state of one path.
type PathEntry struct {
	Path  string
	State State
}

// PathsDigest is the SHA-256 over the entries sorted by path, each as
// "mode SP size SP sha256 SP path NUL", in lowercase hex. Of an absent path
// and of what is no file or link the mode is its kind, the rest 0 and "-".
func PathsDigest(entries []PathEntry) string {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b PathEntry) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, e := range entries {
		writeEntry(h, e)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeEntry(w io.Writer, e PathEntry) {
	mode, sum := e.State.Mode, e.State.SHA256
	if e.State.Kind != File && e.State.Kind != Symlink {
		mode, sum = string(e.State.Kind), "-"
	}
	fmt.Fprintf(w, "%s %d %s %s\x00", mode, e.State.Size, sum, e.Path)
}

// BeforeDigest and AfterDigest are the PathsDigest of both sides of changes.
func BeforeDigest(changes []Change) string {
	return PathsDigest(sideOf(changes, func(c Change) State { return c.Before }))
}

// AfterDigest is the PathsDigest of the changed paths as they become.
func AfterDigest(changes []Change) string {
	return PathsDigest(sideOf(changes, func(c Change) State { return c.After }))
}

func sideOf(changes []Change, side func(Change) State) []PathEntry {
	all := make([]PathEntry, 0, len(changes))
	for _, c := range changes {
		all = append(all, PathEntry{c.Path, side(c)})
	}
	return all
}

// TreeDigest is the PathsDigest of every file and link of a tree: the digest of
// a folder that is not in Git. It reads them all.
func TreeDigest(t Tree) (string, error) {
	var all []PathEntry
	var walk func(dir string) error
	walk = func(dir string) error {
		names, err := t.Names(dir)
		if err != nil {
			return err
		}
		for _, n := range names {
			p := join(dir, n)
			st, err := t.Stat(p)
			if err != nil {
				return err
			}
			switch st.Kind {
			case Dir:
				if err := walk(p); err != nil {
					return err
				}
			case File, Symlink:
				if st.SHA256 == "" {
					data, err := t.Read(p)
					if err != nil {
						return err
					}
					st = stateOf(st.Mode, data)
				}
				all = append(all, PathEntry{p, st})
			case Special:
				all = append(all, PathEntry{p, State{Kind: Special}})
			case Absent:
			}
		}
		return nil
	}
	if err := walk(""); err != nil {
		return "", err
	}
	return PathsDigest(all), nil
}
