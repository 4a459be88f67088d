package world

import (
	"bytes"
	"unicode/utf8"

	"roundtable/commands"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/redact"
	"roundtable/internal/wire"
)

// Bounds of what is shown at once, in bytes.
const (
	maxShownLine = 8 << 10
	maxShownPage = 2 << 20
)

// maxNotes bounds how many findings one answer names.
const maxNotes = 100

// page spells the files from a place on, as many as asked for.
func page(files []patch.FileDiff, v commands.PatchView) (out []wire.PatchFile, next *commands.PatchPlace, err error) {
	at := v.At
	if at.File < 0 || at.File > len(files) || at.Hunk < 0 || at.Line < 0 {
		return nil, nil, fault.Errorf(fault.Invalid, "invalid_cursor", "this cursor is not from this patch; begin again without one").At("/cursor", "not next_cursor of the page before")
	}
	out = []wire.PatchFile{}
	left := room{lines: v.Lines, bytes: maxShownPage}
	for i := at.File; i < len(files); i++ {
		if v.Lines > 0 && len(out) > 0 && left.full() {
			return out, &commands.PatchPlace{File: i}, nil
		}
		f := shown(files[i])
		left.lines-- // so that files without hunks count too
		if v.Lines > 0 {
			var stop *commands.PatchPlace
			f.Hunks, stop = left.hunks(files[i].Hunks, at, i)
			if stop != nil {
				return append(out, f), stop, nil
			}
		}
		out, at = append(out, f), commands.PatchPlace{}
		if v.Files > 0 && len(out) == v.Files && i+1 < len(files) {
			return out, &commands.PatchPlace{File: i + 1}, nil
		}
	}
	return out, nil, nil
}

func shown(f patch.FileDiff) wire.PatchFile {
	name := func(path string) string { return redact.Text(patch.Show(path)) }
	return wire.PatchFile{Op: string(f.Op), Path: name(f.Path()), OldPath: name(f.OldPath), NewPath: name(f.NewPath), OldMode: f.OldMode, NewMode: f.NewMode,
		Binary: f.Binary, Added: f.Added, Removed: f.Removed, Line: f.Line}
}

// room is what still fits on a page.
type room struct{ lines, bytes int }

func (r *room) full() bool { return r.lines <= 0 || r.bytes <= 0 }

// hunks spells the hunks of file i from a place on. Where the page is full, it
// says where the next one begins.
func (r *room) hunks(hunks []patch.Hunk, at commands.PatchPlace, i int) (out []wire.Hunk, stop *commands.PatchPlace) {
	for k := at.Hunk; k < len(hunks); k++ {
		skip := 0
		if k == at.Hunk {
			skip = at.Line
		}
		if r.full() && len(out) > 0 {
			return out, &commands.PatchPlace{File: i, Hunk: k, Line: skip}
		}
		h := &hunks[k]
		lines, all := r.take(h, skip)
		text, _ := patch.ShowLine([]byte(redact.Text(h.Section)))
		out = append(out, wire.Hunk{Line: h.Line, OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines,
			Section: text, Continued: skip > 0, Lines: lines})
		if skip+len(lines) < all {
			return out, &commands.PatchPlace{File: i, Hunk: k, Line: skip + len(lines)}
		}
	}
	return out, nil
}

// take spells the lines of a hunk from one on, at least one, as many as fit,
// and says how many it has in all.
func (r *room) take(h *patch.Hunk, skip int) (out []wire.DiffLine, all int) {
	var rows []wire.DiffLine
	var texts []string
	old, now := h.OldStart, h.NewStart
	for l := range h.Lines() {
		row, text := wire.DiffLine{Op: "context"}, l.Text
		if l.Op != '+' {
			row.Old, old = old, old+1
		}
		if l.Op != '-' {
			row.New, now = now, now+1
		}
		switch {
		case l.Op == '+':
			row.Op = "add"
		case l.Op == '-':
			row.Op = "remove"
		}
		if l.NoEOL {
			row.End = "none"
		} else if bytes.HasSuffix(text, []byte("\r")) {
			row.End, text = "crlf", text[:len(text)-1]
		}
		rows, texts = append(rows, row), append(texts, string(text))
	}
	texts = redact.Lines(texts) // all of them: a secret may begin on the page before
	for i := skip; i < len(rows) && (i == skip || !r.full()); i++ {
		row := rows[i]
		text := cutLine(texts[i], maxShownLine)
		row.Cut = len(text) < len(texts[i])
		row.Text, row.Escaped = patch.ShowLine([]byte(text))
		out = append(out, row)
		r.lines, r.bytes = r.lines-1, r.bytes-len(row.Text)-64
	}
	return out, len(rows)
}

// cutLine gives the first bytes of a line, at most n, without half a character.
func cutLine(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
