package patch

import "strings"

// inTree finds out whether sections are in the tree already, because their
// reverse fits it: nil when none is. Nothing is ever reversed by itself.
func (a *applier) inTree() (*Refusal, error) {
	r := &Refusal{Class: AlreadyApplied, Line: a.sections[0].line, Path: Show(a.names[0][1]), Detail: "the patch is in the tree already"}
	in, first := 0, -1
	for i := range a.sections {
		st := Applies
		if p := a.parts[i]; p.failed || p.loose {
			ok, err := a.reverseFits(i)
			switch {
			case err != nil:
				return nil, err
			case ok:
				st, in = InTree, in+1
				if first < 0 {
					first = i
				}
			case p.failed:
				st = Conflicts
			}
		}
		r.States = append(r.States, PathState{Show(a.names[i][1]), st})
	}
	switch {
	case in == 0 || in < len(a.sections) && len(a.all) == 0:
		return nil, nil
	case in < len(a.sections):
		r.Class, r.Line, r.Path = PartlyApplied, a.sections[first].line, Show(a.names[first][1])
		r.Detail = "some of the files are changed already:"
		for _, s := range r.States[:min(len(r.States), 5)] {
			r.Detail += " " + s.Path + " " + string(s.State) + ","
		}
		r.Detail = strings.TrimSuffix(r.Detail, ",")
	}
	return r, nil
}

// reverseFits reports whether the tree is as the section would leave it.
func (a *applier) reverseFits(i int) (bool, error) {
	c := a.sections[i]
	old, new := a.names[i][0], a.names[i][1]
	if c.deletes() || c.from != nil && !c.copies {
		st, err := a.tree.Stat(old)
		if err != nil || st.Kind != Absent {
			return false, err
		}
	}
	if c.deletes() {
		return true, nil
	}
	st, err := a.tree.Stat(new)
	if err != nil || st.Kind != File && st.Kind != Symlink {
		return false, err
	}
	if c.newMode != "" && c.newMode != st.Mode || c.newMode == "" && len(c.hunks) > 0 && st.Kind == Symlink {
		return false, nil
	}
	if st.Size > int64(a.o.MaxFileBytes) {
		return false, nil
	}
	data, err := a.tree.Read(new)
	if err != nil {
		return false, err
	}
	switch {
	case c.bin != nil:
		return BlobID(data, a.o.SHA256) == c.newOID, nil
	case len(c.hunks) > 0:
		s, r := newText(data).splice(c.hunks, reverse, a.o, &a.budget)
		return r == nil && (!c.creates() || len(s.out) == 0) && !(s.loose && !a.parts[i].failed), nil
	case c.creates():
		return len(data) == 0, nil
	case c.from != nil && c.copies:
		src, err := a.tree.Read(old)
		return err == nil && string(src) == string(data), nil
	}
	return c.from != nil || c.modeLines, nil
}
