package patch

// judgeHeader refuses extended header lines that contradict each other.
func (c *section) judgeHeader(o Options) *Refusal {
	bad := func(detail string) *Refusal { return refuse(MalformedHeader, c.line, "", "%s", detail) }
	switch {
	case c.created && c.deleted:
		return bad("the file is both new and deleted")
	case c.modeLines && (c.created || c.deleted):
		return bad("a new or deleted file has no mode change")
	case c.modeLines && (c.oldMode == "" || c.newMode == ""):
		return bad("old mode and new mode come as a pair")
	case c.modeLines && c.oldMode == c.newMode:
		return bad("old and new mode are the same")
	case (c.from == nil) != (c.to == nil):
		return bad("the from and to lines of a rename or copy come as a pair")
	case c.from != nil && (c.created || c.deleted):
		return bad("a renamed or copied file is not new or deleted")
	case c.from != nil && *c.from == *c.to:
		return bad("a file cannot be renamed or copied onto itself")
	case c.similarity >= 0 && c.from == nil:
		return bad("a similarity index without a rename or copy")
	case len(c.oldOID) > o.oidLen() || len(c.newOID) > o.oidLen():
		return bad("the index line has longer object ids than the repository")
	}
	return nil
}

// judgeBody refuses a body that does not belong to the header, and settles
// what the section does.
func (c *section) judgeBody() *Refusal {
	inconsistent := func(detail string) *Refusal { return refuse(InconsistentNames, c.line, "", "%s", detail) }
	body := len(c.hunks) > 0 || c.bin != nil
	if c.similarity == 100 && body {
		return refuse(MalformedHeader, c.line, "", "%s", "a similarity of 100% and yet changed lines")
	}
	if c.git && !body && !c.created && !c.deleted && !c.modeLines && c.from == nil {
		return refuse(MalformedHeader, c.line, "", "the section changes nothing")
	}
	if c.old != nil {
		switch {
		case c.created && !c.old.null:
			return inconsistent("a new file, but --- does not say /dev/null")
		case c.deleted && !c.new.null:
			return inconsistent("a deleted file, but +++ does not say /dev/null")
		case (c.old.null || c.new.null) && (c.modeLines || c.from != nil):
			return inconsistent("/dev/null beside a mode change, rename or copy")
		case c.old.null && c.deleted, c.new.null && c.created:
			return inconsistent("/dev/null stands on the wrong side")
		}
		c.imply()
	}
	if c.creates() && len(c.hunks) > 0 && (len(c.hunks) > 1 || c.hunks[0].OldLines > 0) {
		return inconsistent("a new file, but its hunk has old lines")
	}
	if c.deletes() && len(c.hunks) > 0 && (len(c.hunks) > 1 || c.hunks[0].NewLines > 0) {
		return inconsistent("a deleted file, but its hunk has new lines")
	}
	return nil
}

// imply finds a creation or deletion that no mode line states: by /dev/null,
// or, without git headers, by a stamp of the epoch.
func (c *section) imply() {
	one := func(start, lines int) bool { return len(c.hunks) == 1 && start == 0 && lines == 0 }
	h := Hunk{}
	if len(c.hunks) > 0 {
		h = c.hunks[0]
	}
	switch {
	case c.created || c.deleted:
	case c.old.null || !c.git && epoch(c.old.stamp) && one(h.OldStart, h.OldLines):
		c.implied = NoteImpliedNew
	case c.new.null || !c.git && epoch(c.new.stamp) && one(h.NewStart, h.NewLines):
		c.implied = NoteImpliedDelete
	}
}

func (c *section) creates() bool { return c.created || c.implied == NoteImpliedNew }
func (c *section) deletes() bool { return c.deleted || c.implied == NoteImpliedDelete }
