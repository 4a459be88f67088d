package world

import (
	"strings"

	"roundtable/internal/patch"
	"roundtable/internal/redact"
	"roundtable/internal/wire"
)

// Bounds on the conflicts of one answer. The paths are all named.
const (
	maxConflicts     = 100
	maxConflictLines = 600
	maxConflictBytes = 256 << 10
)

// shownConflicts spells the first conflicts, and gives all paths, raw.
func shownConflicts(all []patch.Conflict) (out []wire.MergeConflict, paths []string) {
	left := room{lines: maxConflictLines, bytes: maxConflictBytes}
	for i, c := range all {
		path := redact.Text(patch.Show(c.Path))
		paths = append(paths, c.Path)
		if i >= maxConflicts {
			continue
		}
		shown := wire.MergeConflict{Path: path, Reason: string(c.Reason), Detail: redact.Text(c.Detail), Hunks: []wire.MergeHunk{}, HunkCount: len(c.Clashes)}
		if len(c.Clashes) > 0 && !left.full() {
			base, ours, theirs := masked(c.Base), masked(c.Ours), masked(c.Theirs)
			for _, h := range c.Clashes {
				if left.full() {
					break
				}
				shown.Hunks = append(shown.Hunks, wire.MergeHunk{Base: left.excerpt(base, h.Base), Ours: left.excerpt(ours, h.Ours), Theirs: left.excerpt(theirs, h.Theirs)})
			}
		}
		out = append(out, shown)
	}
	return out, paths
}

// masked gives the lines of a file without their ends and without secrets: of
// the whole file, as a secret may begin above what is shown.
func masked(data []byte) []string { return redact.Lines(strings.Split(string(data), "\n")) }

// excerpt spells as many lines of it as there is room for.
func (r *room) excerpt(lines []string, e patch.Excerpt) wire.MergeExcerpt {
	out := wire.MergeExcerpt{Start: e.Start, Count: e.Count, Lines: []wire.MergeLine{}}
	for i := e.Start - 1; i < e.Start-1+e.Count && !r.full(); i++ {
		var l wire.MergeLine
		text := lines[i]
		if i == len(lines)-1 {
			l.End = "none"
		} else if cut, crlf := strings.CutSuffix(text, "\r"); crlf {
			l.End, text = "crlf", cut
		}
		short := cutLine(text, maxShownLine)
		l.Cut = len(short) < len(text)
		l.Text, l.Escaped = patch.ShowLine([]byte(short))
		out.Lines = append(out.Lines, l)
		r.lines, r.bytes = r.lines-1, r.bytes-len(l.Text)-64
	}
	return out
}
