package patch

import "slices"

// levelFromNames finds how many components to strip from what the patch alone
// says; -1 when the tree must tell.
func (p *Patch) levelFromNames() int {
	if p.o.Strip != nil {
		return min(max(*p.o.Strip, 0), maxDepth)
	}
	fits := func(level int) *Refusal {
		for _, c := range p.sections {
			if _, _, r := c.namesAt(level); r != nil {
				return r
			}
		}
		return nil
	}
	r1, r0 := fits(1), fits(0)
	switch {
	case r1 == nil && r0 != nil:
		return 1
	case r0 == nil && r1 != nil:
		return 0
	case r1 != nil:
		if r1.Class == StripMismatch {
			return 0 // the reason at level 0 says more
		}
		return 1
	}
	if slices.ContainsFunc(p.sections, (*section).prefixed) {
		return 1
	}
	return -1
}

// prefixed reports whether a plain section of one name has git's prefix.
func (c *section) prefixed() bool {
	if c.git || c.old == nil || c.old.null == c.new.null {
		return false
	}
	h := c.old
	if h.null {
		h = c.new
	}
	return len(h.name) > 2 && (h.name[:2] == "a/" || h.name[:2] == "b/")
}

// Resolve returns the patch with its names settled: itself, when its own lines
// tell how many components to strip, else by which files are in the tree.
func (p *Patch) Resolve(before Tree) (*Patch, error) {
	if p.level >= 0 {
		return p, nil
	}
	fit1, err := p.fits(1, before)
	if err != nil {
		return nil, err
	}
	fit0, err := p.fits(0, before)
	if err != nil {
		return nil, err
	}
	if fit1 && fit0 {
		return nil, refuse(StripAmbiguous, p.sections[0].line, "", "the names fit the tree with and without their first component; say strip 0 or strip 1")
	}
	q := *p
	q.level = 1
	if fit0 {
		q.level = 0
	}
	if err := q.resolveAt(q.level); err != nil {
		return nil, err
	}
	return &q, nil
}

// fits reports whether at this level every old name is in the tree and no new
// one is, unless the patch takes it away.
func (p *Patch) fits(level int, before Tree) (bool, error) {
	names := make([][2]string, len(p.sections))
	taken := map[string]bool{}
	for i, c := range p.sections {
		old, new, r := c.namesAt(level)
		if r != nil || CheckPath(old, p.o) != nil || CheckPath(new, p.o) != nil {
			return false, nil
		}
		names[i] = [2]string{old, new}
		if c.deletes() || c.from != nil && !c.copies {
			taken[old] = true
		}
	}
	for i, c := range p.sections {
		old, new := names[i][0], names[i][1]
		if !c.creates() {
			st, err := before.Stat(old)
			if err != nil || st.Kind == Absent || st.Kind == Dir {
				return false, err
			}
		}
		if (c.creates() || c.from != nil) && !taken[new] {
			st, err := before.Stat(new)
			if err != nil || st.Kind == File || st.Kind == Symlink {
				return false, err
			}
		}
	}
	return true, nil
}

// resolveAt settles the names at a level and judges them.
func (p *Patch) resolveAt(level int) error {
	var all []*Refusal
	p.level = level
	names := make([][2]string, len(p.sections))
	for i, c := range p.sections {
		old, new, r := c.namesAt(level)
		if r != nil {
			all = append(all, r)
			continue
		}
		names[i] = [2]string{old, new}
		if r := c.judgeNames(level, old, new, p.o); r != nil {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		all = p.duplicates(names)
	}
	if err := verdict(all); err != nil {
		return err
	}
	p.names = names
	return nil
}

// judgeNames checks every name of the section, also one that is only read.
func (c *section) judgeNames(level int, old, new string, o Options) *Refusal {
	all := []string{old}
	if new != old {
		all = append(all, new)
	}
	if !c.git {
		for _, h := range []*headerName{c.old, c.new} {
			if s, ok := strip(h.name, level); ok && !h.null {
				all = append(all, s)
			}
		}
	}
	for _, name := range all {
		if class, detail := judgePath(name, o); class != "" {
			return refuse(class, c.line, name, "%s", detail)
		}
	}
	if c.oldMode == modeGit || c.newMode == modeGit {
		return refuse(Gitlink, c.line, new, "a submodule is not changed by a patch")
	}
	if c.newMode == modeLink && isGitmodules(base(new)) {
		return refuse(PathDotgit, c.line, new, ".gitmodules is never a symlink")
	}
	return nil
}

// duplicates finds paths that two sections change. Taking a path away and
// putting another there are two things: a rename may make room for a new
// file, and a delete and a create are a change of kind.
func (p *Patch) duplicates(names [][2]string) (all []*Refusal) {
	taken, put := map[string]*section{}, map[string]*section{}
	for i, c := range p.sections {
		old, new := names[i][0], names[i][1]
		takes := !c.creates() && !(c.from != nil && c.copies)
		puts := !c.deletes()
		switch {
		case takes && taken[old] != nil:
			all = append(all, refuse(DuplicatePath, c.line, old, "an earlier section (line %d) changes the same file; join them, or send a series", taken[old].line))
		case puts && put[new] != nil:
			all = append(all, refuse(DuplicatePath, c.line, new, "an earlier section (line %d) writes the same file; join them, or send a series", put[new].line))
		case c.creates() && sameKind(taken[new], c):
			all = append(all, refuse(DuplicatePath, c.line, new, "an earlier section (line %d) deletes the same file; join them into one change", taken[new].line))
		case c.deletes() && sameKind(c, put[old]):
			all = append(all, refuse(DuplicatePath, c.line, old, "an earlier section (line %d) creates the same file; join them into one change", put[old].line))
		}
		if takes {
			taken[old] = c
		}
		if puts {
			put[new] = c
		}
	}
	return all
}

// sameKind reports whether a deletion and a creation of one path are not a
// change between file and symlink.
func sameKind(del, cre *section) bool {
	return del != nil && cre != nil && del.deletes() && cre.creates() && (del.oldMode == modeLink) == (cre.newMode == modeLink)
}
