package patch

import (
	"bytes"
	"errors"
)

// Undo gives what takes a tree in which the patch is applied back to what it
// was before, byte for byte: for each path the present state and bytes, and
// those it had. The patch applied to that older tree gives exactly the present
// one, which is checked; where no such tree can be told from the patch, as when
// a binary section has no reverse part, the error is a *Refusal.
//
// How many components are to be stripped is told by the tree before where the
// patch does not say it, and that tree is not here: what more than one count
// leads to is refused.
func Undo(data []byte, o Options, after Tree) ([]Image, error) {
	o.keepReverse = true
	p, err := Parse(data, o)
	if err != nil {
		return nil, err
	}
	if _, known := p.Level(); known {
		return p.undo(after)
	}
	var found []Image
	var first error
	for _, level := range []int{1, 0} {
		o.Strip = &level
		images, err := undoAt(data, o, after)
		refused, _ := errors.AsType[*Refusal](err)
		switch {
		case err != nil && refused == nil:
			return nil, err
		case err != nil && first == nil:
			first = err
		case err == nil && found != nil:
			return nil, refuse(StripAmbiguous, p.sections[0].line, "", "with one component stripped from the names and with none, the patch can have led to this tree: say which")
		case err == nil:
			found = images
		}
	}
	if found == nil {
		return nil, first
	}
	return found, nil
}

func undoAt(data []byte, o Options, after Tree) ([]Image, error) {
	p, err := Parse(data, o)
	if err != nil {
		return nil, err
	}
	return p.undo(after)
}

func (p *Patch) undo(after Tree) ([]Image, error) {
	u := &undoer{p: p, after: after, was: map[string]Change{}}
	for i, c := range p.sections {
		if err := u.section(c, p.names[i][0], p.names[i][1]); err != nil {
			return nil, err
		}
	}
	changes, err := u.changes()
	if err != nil {
		return nil, err
	}
	return u.check(changes)
}

// An undoer works out the tree before.
type undoer struct {
	p     *Patch
	after Tree
	was   map[string]Change // what each path becomes by undoing
}

// section sets what the section's paths were before it.
func (u *undoer) section(c *section, old, new string) error {
	if c.deletes() {
		if c.oldMode == "" {
			return u.unknown(c, old, "the patch does not say the mode of what it deletes")
		}
		data, err := u.content(c, old, nil)
		if err == nil {
			u.set(old, stateOf(c.oldMode, data), data)
		}
		return err
	}
	now, err := u.after.Stat(new)
	switch {
	case err != nil:
		return err
	case now.Kind != File && now.Kind != Symlink || now.Size > int64(u.p.o.MaxFileBytes):
		return u.unknown(c, new, "it is not as the patch leaves it")
	}
	if _, deleted := u.was[new]; !deleted && (c.creates() || c.from != nil) {
		u.set(new, State{Kind: Absent}, nil)
	}
	if c.creates() || c.from != nil && c.copies {
		return nil
	}
	data, err := u.after.Read(new)
	if err != nil {
		return err
	}
	mode := now.Mode
	if c.oldMode != "" {
		mode = c.oldMode
	}
	if data, err = u.content(c, new, data); err == nil {
		u.set(old, stateOf(mode, data), data)
	}
	return err
}

// content gives the bytes before a section, made from those after it.
func (u *undoer) content(c *section, path string, now []byte) ([]byte, error) {
	switch {
	case c.bin != nil && c.back == nil:
		return nil, u.unknown(c, path, "the binary section has no reverse part")
	case c.bin != nil && c.back.delta:
		data, ok := applyDelta(c.back.data, now)
		if !ok {
			return nil, u.unknown(c, path, "the delta back does not fit")
		}
		return data, nil
	case c.bin != nil:
		return c.back.data, nil
	case len(c.hunks) == 0:
		return now, nil
	}
	budget := searchBudget
	s, r := newText(now).splice(c.hunks, reverse, u.p.o, &budget)
	if r != nil {
		return nil, u.unknown(c, path, r.Detail)
	}
	return bytes.Clone(s.out), nil
}

// set notes what a path was. Of a file that comes back, its being absent in
// between does not count.
func (u *undoer) set(path string, st State, data []byte) {
	if data == nil && st.Kind != Absent {
		data = []byte{}
	}
	u.was[path] = Change{Path: path, After: st, Content: data}
}

func (u *undoer) unknown(c *section, path, why string) error {
	return refuse(PreimageMismatch, c.line, path, "what was there before cannot be told: %s", why)
}

// changes completes the changes with the present states.
func (u *undoer) changes() (all []Change, err error) {
	for path, c := range u.was {
		if c.Before, err = u.after.Stat(path); err != nil {
			return nil, err
		}
		if c.Before.Kind == File || c.Before.Kind == Symlink {
			data, err := u.after.Read(path)
			if err != nil {
				return nil, err
			}
			c.Before = stateOf(c.Before.Mode, data)
		}
		all = append(all, c)
	}
	return all, nil
}

// check applies the patch to the tree that was found, which must give the
// present one.
func (u *undoer) check(changes []Change) ([]Image, error) {
	r, err := Apply(u.p, After(u.after, changes))
	if again, ok := errors.AsType[*Refusal](err); ok {
		return nil, refuse(PreimageMismatch, again.Line, "", "what was there before cannot be told: %s", again.Detail)
	}
	if err != nil {
		return nil, err
	}
	images := make([]Image, 0, len(r.Changes))
	for _, c := range r.Changes {
		i, was := u.was[c.Path]
		if !was {
			continue // the source of a copy
		}
		m := Image{Path: c.Path, Before: c.After, After: c.Before, Old: c.Content, New: i.Content}
		now, err := u.after.Stat(c.Path)
		if err != nil {
			return nil, err
		}
		if now.Kind != c.After.Kind && !(now.Kind == Dir && c.After.Kind == Absent) || now.Kind != Dir && now.Mode != c.After.Mode {
			return nil, refuse(PreimageMismatch, 0, c.Path, "it is not as the patch leaves it")
		}
		if c.After.Kind != Absent {
			data, err := u.after.Read(c.Path)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(data, c.Content) {
				return nil, refuse(PreimageMismatch, 0, c.Path, "it is not as the patch leaves it")
			}
		}
		images = append(images, m)
	}
	return images, nil
}
