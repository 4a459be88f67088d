package patch

import (
	"strings"
)

// section computes what becomes of one section's file. Refusals are collected;
// an error is a failure to read the tree.
func (a *applier) section(i int) error {
	c, p := a.sections[i], &a.parts[i]
	old, new := a.names[i][0], a.names[i][1]
	p.before, p.after = State{Kind: Absent}, State{Kind: Absent}
	if !c.deletes() {
		p.after = State{Kind: File, Mode: modeFile} // until more is known
		if c.newMode != "" {
			p.after = kindOf(c.newMode)
		}
	}
	if !c.creates() {
		if ok, err := a.readOld(i, old); err != nil || !ok {
			return err
		}
	}
	if c.creates() || c.from != nil {
		if err := a.judgeNew(i, new); err != nil {
			return err
		}
	}
	conv, err := a.conversion(i, old, new)
	if err != nil || conv == nil {
		return err
	}
	src, r := conv.clean(a.images[old], c)
	if c.creates() {
		src = nil
	}
	if r != nil {
		a.refuse(i, r.Class, c.firstLine(), old, "%s", r.Detail).Hint = r.Hint
		return nil
	}
	out, ok := a.content(i, src)
	if !ok {
		return nil
	}
	a.checkOID(i, src)
	if c.implied != "" {
		a.note(i, Note{Kind: c.implied})
	}
	if c.deletes() {
		if len(out) > 0 {
			a.refuse(i, ContextMismatch, c.firstLine(), old, "the file has more content than the patch deletes")
		}
		return nil
	}
	a.finish(i, conv, out)
	return nil
}

// firstLine is the line of the first hunk, or of the section.
func (c *section) firstLine() int {
	if len(c.hunks) > 0 {
		return c.hunks[0].Line
	}
	return c.line
}

func kindOf(mode string) State {
	if mode == modeLink {
		return State{Kind: Symlink, Mode: mode}
	}
	return State{Kind: File, Mode: mode}
}

// readOld reads the file before and judges its kind and mode.
func (a *applier) readOld(i int, old string) (ok bool, err error) {
	c, p := a.sections[i], &a.parts[i]
	if ok, err := a.parentsBefore(i, old); !ok || err != nil {
		return false, err
	}
	st, err := a.tree.Stat(old)
	if err != nil {
		return false, err
	}
	p.before = st
	body := len(c.hunks) > 0 || c.bin != nil
	switch {
	case st.Kind == Absent:
		r := a.refuse(i, MissingFile, c.line, old, "the file is not there")
		return false, a.nearName(r, old)
	case st.Kind == Special:
		a.refuse(i, SpecialFile, c.line, old, "this is no file but a FIFO, socket, device or repository")
		return false, nil
	case st.Kind == Dir:
		a.refuse(i, TypeMismatch, c.line, old, "this is a folder")
		return false, nil
	case c.oldMode == "" && body && st.Kind == Symlink:
		a.refuse(i, TypeMismatch, c.line, old, "this is a symlink, and the patch does not say so (mode 120000)")
		return false, nil
	case c.oldMode != "" && kindOf(c.oldMode).Kind != st.Kind:
		a.refuse(i, TypeMismatch, c.line, old, "this is a %s, the patch says mode %s", st.Kind, c.oldMode)
		return false, nil
	case c.newMode != "" && !c.deletes() && kindOf(c.newMode).Kind != st.Kind:
		a.refuse(i, TypeMismatch, c.line, old, "a %s becomes mode %s: write this as a deletion and a creation", st.Kind, c.newMode)
		return false, nil
	}
	if c.newMode == "" && !c.deletes() {
		p.after = State{Kind: st.Kind, Mode: st.Mode}
	}
	data, ok, err := a.read(i, old, st)
	if err != nil || !ok {
		return false, err
	}
	p.before = stateOf(st.Mode, data)
	if c.oldMode != "" && c.oldMode != st.Mode {
		a.refuse(i, ModeMismatch, c.line, old, "the file has mode %s, the patch says %s", st.Mode, c.oldMode)
	}
	return true, nil
}

// read gives the bytes at a path, once, within the bounds.
func (a *applier) read(i int, path string, st State) ([]byte, bool, error) {
	if data, ok := a.images[path]; ok {
		return data, true, nil
	}
	if st.Size > int64(a.o.MaxFileBytes) {
		a.refuse(i, LimitFileBytes, a.sections[i].line, path, "the file has %d bytes; a file may have %d", st.Size, a.o.MaxFileBytes)
		return nil, false, nil
	}
	data, err := a.tree.Read(path)
	if err != nil {
		return nil, false, err
	}
	a.images[path] = data
	return data, a.count(i, path, len(data)), nil
}

// count adds n bytes to what the apply holds.
func (a *applier) count(i int, path string, n int) bool {
	if n > a.o.MaxFileBytes {
		a.refuse(i, LimitFileBytes, a.sections[i].line, path, "the file has %d bytes; a file may have %d", n, a.o.MaxFileBytes)
		return false
	}
	if a.total += n; a.total > a.o.MaxTotalBytes {
		a.refuse(i, LimitFileBytes, a.sections[i].line, path, "the files of the patch have more than %d bytes in all", a.o.MaxTotalBytes)
		return false
	}
	return true
}

// judgeNew refuses a created name that is there and stays.
func (a *applier) judgeNew(i int, new string) error {
	c := a.sections[i]
	st, err := a.tree.Stat(new)
	if err != nil {
		return err
	}
	switch {
	case st.Kind == Special:
		a.refuse(i, SpecialFile, c.line, new, "a FIFO, socket, device or repository is in the way")
	case (st.Kind == File || st.Kind == Symlink) && !a.takesAway(new):
		a.refuse(i, Exists, c.line, new, "a file of this name is there")
	}
	return nil
}

// takesAway reports whether a section deletes or renames the path.
func (a *applier) takesAway(path string) bool {
	if a.taken == nil {
		a.taken = map[string]bool{}
		for i, c := range a.sections {
			if c.deletes() || c.from != nil && !c.copies {
				a.taken[a.names[i][0]] = true
			}
		}
	}
	return a.taken[path]
}

// content gives the bytes after the section, made from those before.
func (a *applier) content(i int, src []byte) ([]byte, bool) {
	c, p := a.sections[i], &a.parts[i]
	path := a.names[i][0]
	switch {
	case c.bin != nil:
		return a.binaryContent(i, src)
	case len(c.hunks) == 0:
		return src, true
	}
	s, r := newText(src).splice(c.hunks, forward, a.o, &a.budget)
	if r != nil {
		a.refuse(i, r.Class, r.Line, path, "%s", r.Detail).Hint = r.Hint
		return nil, false
	}
	p.placed, p.loose = s.placed, s.loose
	for _, at := range s.placed {
		if at.Offset != 0 {
			a.note(i, Note{Kind: NoteOffset, Line: c.hunks[at.Hunk].Line, Offset: at.Offset})
		}
	}
	return s.out, true
}

func (a *applier) binaryContent(i int, src []byte) ([]byte, bool) {
	c := a.sections[i]
	path := a.names[i][0]
	zero := strings.Repeat("0", a.o.oidLen())
	have := zero
	if !c.creates() {
		have = BlobID(src, a.o.SHA256)
	}
	if have != c.oldOID {
		a.refuse(i, PreimageMismatch, c.line, path, "the file has id %s, the patch is made from %s", have, c.oldOID)
		return nil, false
	}
	out := c.bin.data
	if c.bin.delta {
		var ok bool
		if out, ok = applyDelta(c.bin.data, src); !ok {
			a.refuse(i, BinaryCorrupt, c.line, path, "the delta does not fit the file it names")
			return nil, false
		}
	}
	if got := BlobID(out, a.o.SHA256); got != c.newOID && !(c.deletes() && c.newOID == zero && len(out) == 0) {
		a.refuse(i, BinaryCorrupt, c.line, path, "the result has id %s, the patch promises %s", got, c.newOID)
		return nil, false
	}
	return out, true
}

// checkOID compares the old id of a text section with the file it found.
func (a *applier) checkOID(i int, src []byte) {
	c := a.sections[i]
	if c.bin != nil || len(c.oldOID) < 7 {
		return
	}
	have := strings.Repeat("0", a.o.oidLen())
	if !c.creates() {
		have = BlobID(src, a.o.SHA256)
	}
	if strings.HasPrefix(have, c.oldOID) || !c.creates() && a.lfFormIs(src, c.oldOID) {
		a.parts[i].loose = false // it is the very file
		return
	}
	if a.o.IgnoreOID {
		a.note(i, Note{Kind: NoteOIDDiffers, Detail: "the patch was made from another version of the file"})
		return
	}
	a.refuse(i, PreimageMismatch, c.line, a.names[i][0], "the file has id %s, the patch is made from %s", have[:len(c.oldOID)], c.oldOID)
}

// lfFormIs reports whether the file has CRLF line ends throughout, and the id
// names it with LF: as it is in the repository when Git converts it.
func (a *applier) lfFormIs(src []byte, oid string) bool {
	lf, ok := lfForm(src)
	return ok && strings.HasPrefix(BlobID(lf, a.o.SHA256), oid)
}

// finish settles the state after.
func (a *applier) finish(i int, conv *conversion, out []byte) {
	c, p := a.sections[i], &a.parts[i]
	new := a.names[i][1]
	mode := c.newMode
	switch {
	case mode == "" && c.creates():
		mode = modeFile
	case mode == "":
		mode = p.before.Mode
	}
	out, r := conv.smudge(out)
	if r != nil {
		a.refuse(i, r.Class, c.firstLine(), new, "%s", r.Detail).Hint = r.Hint
		return
	}
	if !a.count(i, new, len(out)) {
		return
	}
	p.after, p.content = stateOf(mode, out), out
	if p.content == nil {
		p.content = []byte{}
	}
	if mode == modeLink && isGitmodules(base(new)) {
		a.refuse(i, PathDotgit, c.line, new, ".gitmodules is never a symlink")
	}
}
