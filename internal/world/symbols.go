package world

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"time"

	"roundtable/commands"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/redact"
	"roundtable/internal/symbol"
	"roundtable/internal/wire"
)

// symbolsTime is how long the files of one page are read, but for the first.
const symbolsTime = 3 * time.Second

// maxReason bounds a reason, in bytes: a parser's words may quote the text.
const maxReason = 500

// Symbols shows a page of the symbols that a revision's patch touches, each
// side as it is on the revision's own base.
func (w *World) Symbols(ctx context.Context, root string, v commands.PatchView) (out commands.SymbolPage, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return out, err
	}
	got, base, err := w.applied(ctx, s, v.Revision, "no_symbols")
	if err != nil {
		return out, err
	}
	at := v.At
	if at.File < 0 || at.File > len(got.Files) || at.Line < 0 || at.Hunk != 0 {
		return out, fault.Errorf(fault.Invalid, "invalid_cursor", "this cursor is not from this patch; begin again without one").At("/cursor", "not next_cursor of the page before")
	}
	c := compared{ctx: ctx, base: base, after: map[string][]byte{}}
	for _, x := range got.Changes {
		c.after[x.Path] = x.Content
	}
	defer func() { _ = c.reader.Close() }() // a process that has nothing to lose
	begin, left := time.Now(), room{bytes: maxShownPage}
	out.Files = []wire.SymbolFile{}
	for i := at.File; i < len(got.Files); i++ {
		if len(out.Files) == v.Files || len(out.Files) > 0 && (left.bytes <= 0 || time.Since(begin) > symbolsTime) {
			out.Next = &commands.PatchPlace{File: i}
			return out, nil
		}
		f, err := c.file(got.Files[i])
		if err != nil {
			return out, err
		}
		more := left.symbols(&f, at.Line)
		out.Files = append(out.Files, f)
		if more > 0 {
			out.Next = &commands.PatchPlace{File: i, Line: more}
			return out, nil
		}
		at.Line = 0
	}
	return out, nil
}

// symbols cuts the symbols of f to those from one on, as many as fit, and says
// where the next page begins; 0 if all are there.
func (r *room) symbols(f *wire.SymbolFile, from int) (next int) {
	f.Continued = from > 0
	k := 0
	keep := func(list []wire.Symbol) []wire.Symbol {
		out := []wire.Symbol{}
		for _, s := range list {
			if k++; k <= from || next > 0 {
				continue
			}
			if r.bytes <= 0 && k > from+1 {
				next = k - 1
				continue
			}
			r.bytes -= len(s.Name) + 96
			out = append(out, s)
		}
		return out
	}
	f.Before = keep(f.Before)
	f.After = keep(f.After)
	r.bytes -= len(f.Path) + len(f.Reason) + 160
	return next
}

// compared compares the symbols of files before and after a patch.
type compared struct {
	ctx    context.Context
	base   *patch.MapTree
	after  map[string][]byte // by path
	reader symbol.Reader
}

// A half is one side of a file: its symbols, and which of them are touched.
type half struct {
	symbol.File
	exists  bool
	touched []bool
}

func (c *compared) file(f patch.FileResult) (out wire.SymbolFile, err error) {
	was, is := half{exists: f.OldPath != "" && f.Op != patch.Copy}, half{exists: f.NewPath != ""}
	if was.exists {
		data, err := c.base.Read(f.OldPath)
		if err != nil {
			return out, err
		}
		if was.File, err = c.read(f, f.OldPath, f.Before, data); err != nil {
			return out, err
		}
	}
	if is.exists {
		if is.File, err = c.read(f, f.NewPath, f.After, c.after[f.NewPath]); err != nil {
			return out, err
		}
	}
	before, after := lines(f, c.after[f.NewPath])
	was.touch(before)
	is.touch(after)
	head := shown(f.FileDiff)
	out = wire.SymbolFile{Op: head.Op, Path: head.Path, OldPath: head.OldPath, NewPath: head.NewPath, Language: is.Language,
		Outside: was.outside(before) || is.outside(after)}
	if !is.exists {
		out.Language = was.Language
	}
	out.Status, out.Reason = status(was, is)
	out.Before, out.After = marked(was, is, "removed"), marked(is, was, "added")
	return out, nil
}

// read reads one side. What is not a file of text has no symbols.
func (c *compared) read(f patch.FileResult, path string, st patch.State, data []byte) (symbol.File, error) {
	language := symbol.LanguageOf(path)
	switch {
	case st.Kind != patch.File:
		return symbol.File{Status: symbol.Unsupported, Reason: "it is a symbolic link"}, nil
	case f.Binary:
		return symbol.File{Language: language, Status: symbol.Binary, Reason: "the patch has it as binary"}, nil
	case language != "" && len(f.Placed) == 0 && f.Op != patch.Copy:
		return symbol.File{Language: language, Status: symbol.OK}, nil // no line of it is changed
	}
	return c.reader.Read(c.ctx, symbol.Source{Name: path, Data: data})
}

// A place is a range of lines or what lies between two lines: line n is 2n,
// and the gap before it 2n-1.
type place struct{ first, last int }

// lines gives the places that a patch changes in a file, before and after, in
// order. content is the file after.
func lines(f patch.FileResult, content []byte) (before, after []place) {
	at := func(start, n int) place {
		if n == 0 {
			return place{2*start - 1, 2*start - 1}
		}
		return place{2 * start, 2 * (start + n - 1)}
	}
	if f.Op == patch.Copy { // all of it is new
		n := bytes.Count(content, []byte("\n"))
		if len(content) > 0 && content[len(content)-1] != '\n' {
			n++
		}
		return nil, []place{at(1, n)}
	}
	for _, e := range f.Edits() {
		before, after = append(before, at(e.OldStart, e.OldLines)), append(after, at(e.NewStart, e.NewLines))
	}
	return before, after
}

// touch notes which symbols lie on the places.
func (h *half) touch(at []place) {
	h.touched = make([]bool, len(h.Symbols))
	for i, s := range h.Symbols {
		k := sort.Search(len(at), func(k int) bool { return at[k].last >= 2*s.First })
		h.touched[i] = k < len(at) && at[k].first <= 2*s.Last
	}
}

// outside reports whether there are lines among the places that no symbol has.
func (h *half) outside(at []place) bool {
	if !h.exists || h.Status != symbol.OK {
		return false
	}
	i, end := 0, 0 // the symbols before i have lines up to end
	for _, p := range at {
		if p.first%2 == 1 {
			continue // a gap has no lines
		}
		for line := p.first / 2; line <= p.last/2; {
			for i < len(h.Symbols) && h.Symbols[i].First <= line {
				end = max(end, h.Symbols[i].Last)
				i++
			}
			if end < line {
				return true
			}
			line = end + 1
		}
	}
	return false
}

// status is that of a file whose sides have these.
func status(was, is half) (s, reason string) {
	good := func(h half) bool { return !h.exists || h.Status == symbol.OK }
	switch {
	case good(was) && good(is):
		return string(symbol.OK), ""
	case good(was):
		s, reason = string(is.Status), is.Reason
	case good(is):
		s, reason = string(was.Status), "before: "+was.Reason
	case was.Reason == is.Reason:
		s, reason = string(is.Status), is.Reason
	default:
		s, reason = string(is.Status), "before: "+was.Reason+"; after: "+is.Reason
	}
	reason, _ = patch.ShowLine([]byte(redact.Text(cutLine(reason, maxReason))))
	return s, reason
}

// A key tells symbols of one file apart, as far as it goes: the second of one
// name is the second of it on the other side too.
type key struct {
	name string
	kind symbol.Kind
	nth  int
}

func (h half) keys() []key {
	seen := map[key]int{}
	out := make([]key, len(h.Symbols))
	for i, s := range h.Symbols {
		k := key{name: s.Name, kind: s.Kind}
		seen[k]++
		k.nth = seen[k]
		out[i] = k
	}
	return out
}

// marked gives the symbols of h that are touched on either side. alone is what
// has become of those that the other side does not have.
func marked(h, other half, alone string) []wire.Symbol {
	there := map[key]bool{}
	for i, k := range other.keys() {
		there[k] = other.touched[i]
	}
	if other.exists && other.Status != symbol.OK {
		alone = "unknown"
	}
	out := []wire.Symbol{}
	for i, k := range h.keys() {
		touched, both := there[k]
		if !h.touched[i] && !touched {
			continue
		}
		s := h.Symbols[i]
		w := wire.Symbol{Name: redact.Text(patch.Show(s.Name)), Kind: string(s.Kind), First: s.First, Last: s.Last, Change: alone}
		if both {
			w.Change = "changed"
		}
		out = append(out, w)
	}
	return slices.Clip(out)
}
