package patch

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// prefixes gives the folders above a path, the root not included.
func prefixes(path string) []string {
	var all []string
	for i, c := range []byte(path) {
		if c == '/' {
			all = append(all, path[:i])
		}
	}
	return all
}

// parentsBefore refuses a path that is read through a symlink, or that lies in
// something that is not ours.
func (a *applier) parentsBefore(i int, path string) (bool, error) {
	for _, d := range prefixes(path) {
		st, err := a.tree.Stat(d)
		if err != nil {
			return false, err
		}
		switch st.Kind {
		case Symlink:
			a.refuse(i, SymlinkParent, a.sections[i].line, path, "the folder %s is a symlink", Show(d))
			return false, nil
		case Special:
			a.refuse(i, DirConflict, a.sections[i].line, path, "%s is no folder of this tree", Show(d))
			return false, nil
		case Absent, File:
			return true, nil // nothing beneath: the path is absent
		case Dir:
		}
	}
	return true, nil
}

// judgePlace judges the new path of a section in the tree after.
func (a *applier) judgePlace(i int) error {
	c := a.sections[i]
	if c.deletes() {
		return nil
	}
	path := a.names[i][1]
	for _, d := range prefixes(path) {
		st, err := a.parentAfter(d)
		if err != nil {
			return err
		}
		switch st.Kind {
		case Symlink:
			a.refuse(i, SymlinkParent, c.line, path, "the folder %s is a symlink", Show(d))
			return nil
		case File, Special:
			a.refuse(i, DirConflict, c.line, path, "%s is no folder", Show(d))
			return nil
		case Absent, Dir:
		}
	}
	if c.creates() || c.from != nil {
		if ok, err := a.judgeName(i, path); err != nil || !ok {
			return err
		}
	}
	return a.judgeLink(i)
}

// judgeName judges a name that the section brings into the tree.
func (a *applier) judgeName(i int, path string) (ok bool, err error) {
	c := a.sections[i]
	st, err := a.tree.Stat(path)
	if err != nil {
		return false, err
	}
	if st.Kind == Dir {
		gone, err := a.after.gone(path)
		if err != nil {
			return false, err
		}
		if !gone {
			a.refuse(i, DirConflict, c.line, path, "a folder is there")
			return false, nil
		}
	}
	r, err := a.collision(path)
	if r != nil {
		a.refuse(i, r.Class, c.line, path, "%s", r.Detail)
	}
	return r == nil, err
}

// parentAfter is what stands at a folder's name in the tree after: what the
// patch puts there counts before the folder that a path beneath it needs.
func (a *applier) parentAfter(d string) (State, error) {
	if c, ok := a.after.now[d]; ok {
		return c.After, nil
	}
	return a.tree.Stat(d)
}

// collision finds a name of the tree after that some file system takes for a
// new component of the path.
func (a *applier) collision(path string) (*Refusal, error) {
	for _, p := range append(prefixes(path), path) {
		st, err := a.tree.Stat(p)
		if err != nil {
			return nil, err
		}
		if st.Kind != Absent {
			continue // the name is not new
		}
		folded, err := a.siblings(dirOf(p))
		if err != nil {
			return nil, err
		}
		name := base(p)
		for _, other := range folded[foldCase(name)] {
			switch {
			case other == name:
			case norm.NFC.String(other) == norm.NFC.String(name):
				return refuse(UnicodeCollision, 0, "", "%s differs only in Unicode form from %s", Quote(name), Quote(other)), nil
			default:
				return refuse(CaseCollision, 0, "", "%s differs only in case from %s", Show(name), Show(other)), nil
			}
		}
	}
	return nil, nil
}

// siblings gives the names of a folder of the tree after by their folded form.
func (a *applier) siblings(dir string) (map[string][]string, error) {
	if m, ok := a.folded[dir]; ok {
		return m, nil
	}
	names, err := a.after.Names(dir)
	if err != nil {
		return nil, err
	}
	m := make(map[string][]string, len(names))
	for _, n := range names {
		f := foldCase(n)
		m[f] = append(m[f], n)
	}
	if a.folded == nil {
		a.folded = map[string]map[string][]string{}
	}
	a.folded[dir] = m
	return m, nil
}

// foldCase maps names that some file system may take for one to the same.
func foldCase(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] >= 0x80 {
			return norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
		}
	}
	return strings.ToLower(name)
}

// nearName hints at a name that is there and differs only in form or case.
func (a *applier) nearName(r *Refusal, path string) error {
	for _, p := range append(prefixes(path), path) {
		st, err := a.tree.Stat(p)
		if err != nil {
			return err
		}
		if st.Kind == Dir {
			continue
		}
		names, err := a.tree.Names(dirOf(p))
		if err != nil {
			return err
		}
		name := base(p)
		for _, n := range names {
			switch {
			case n == name:
			case norm.NFC.String(n) == norm.NFC.String(name):
				r.Hint = HintUnicode
			case r.Hint == "" && foldCase(n) == foldCase(name):
				r.Hint = HintCase
			default:
				continue
			}
			r.Detail = "the file is not there; its name differs from " + Quote(n) + "."
		}
		return nil
	}
	return nil
}
