package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

// A verdict is what the tool answers about a patch. Paths are spelled so that
// none can steer a terminal.
type verdict struct {
	Outcome     string            `json:"outcome"`           // applied, refused; of explain, parsed
	Class       string            `json:"class,omitempty"`   // of a refusal
	Meaning     string            `json:"meaning,omitempty"` // of the class
	Message     string            `json:"message,omitempty"`
	Line        int               `json:"line,omitempty"` // of the patch, 1-based
	Path        string            `json:"path,omitempty"`
	Hint        string            `json:"hint,omitempty"`
	Advice      string            `json:"advice,omitempty"` // what to send instead
	Suggestion  []byte            `json:"suggestion,omitempty"`
	Reasons     []reason          `json:"reasons,omitempty"` // all of them, where there are several
	States      []patch.PathState `json:"states,omitempty"`
	Files       []wire.PatchFile  `json:"files"`
	Notes       []patch.Note      `json:"notes"`
	Tree        string            `json:"tree,omitempty"`
	TreeKind    string            `json:"tree_kind,omitempty"` // git: a tree object's id; manifest: SHA-256 of the listing
	PatchDigest string            `json:"patch_digest"`
	Strip       *int              `json:"strip,omitempty"` // components taken from the names
	Transaction string            `json:"transaction_id,omitempty"`
}

// A reason is one of several for which a patch is refused.
type reason struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Path    string `json:"path,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// newVerdict is what is known of a fitting.
func newVerdict(x fitting, data []byte) verdict {
	v := verdict{Outcome: "applied", Files: []wire.PatchFile{}, Notes: []patch.Note{}, PatchDigest: patch.Digest(data)}
	if x.patch != nil {
		for _, f := range x.patch.Files() {
			v.Files = append(v.Files, shownFile(f))
		}
		if x.result != nil {
			v.place(x.result.Files)
		}
		if n, known := x.patch.Level(); known {
			v.Strip = &n
		}
	}
	if x.result != nil {
		v.Notes = append(v.Notes, x.result.Notes...)
	}
	if x.refused != nil {
		v.refuse(x.refused)
	}
	return v
}

// place notes where hunks stand that are not where the patch states them.
func (v *verdict) place(files []patch.FileResult) {
	for i, f := range files {
		for _, p := range f.Placed {
			if p.Hunk < len(v.Files[i].Hunks) {
				v.Files[i].Hunks[p.Hunk].Offset = p.Offset
			}
		}
	}
}

func shownFile(f patch.FileDiff) wire.PatchFile {
	var hunks []wire.Hunk
	for _, h := range f.Hunks {
		hunks = append(hunks, wire.Hunk{Line: h.Line, OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Section: patch.Show(h.Section)})
	}
	return wire.PatchFile{Hunks: hunks,
		Op: string(f.Op), Path: patch.Show(f.Path()), OldPath: patch.Show(f.OldPath), NewPath: patch.Show(f.NewPath),
		OldMode: f.OldMode, NewMode: f.NewMode, Binary: f.Binary, Added: f.Added, Removed: f.Removed, Line: f.Line}
}

func (v *verdict) refuse(r *patch.Refusal) {
	v.Outcome, v.Class, v.Message, v.Line, v.Path, v.Hint = "refused", string(r.Class), r.Detail, r.Line, r.Path, string(r.Hint)
	all := patch.Classes()
	if i := slices.IndexFunc(all, func(c patch.ClassInfo) bool { return c.Class == r.Class }); i >= 0 {
		v.Meaning = all[i].Meaning
	}
	for _, o := range r.All {
		v.Reasons = append(v.Reasons, reason{string(o.Class), o.Detail, o.Line, o.Path, string(o.Hint)})
	}
	v.Advice, v.Suggestion, v.States = advice(r.Hint), r.Suggestion, r.States
}

// fail makes the verdict of a fault that refuses; false if it says nothing
// about the patch or the folder. Of an apply every fault refuses that leaves the
// folder as it was and says why, also a full disk or somebody else's lock.
func (v *verdict) fail(err error, applying bool) bool {
	f, ok := errors.AsType[*fault.Error](err)
	state := ok && applying && strings.HasPrefix(f.Code, "state.") && f.Code != "state.unknown"
	if !ok || !state && f.Kind != fault.Refused && f.Kind != fault.TooLarge && f.Kind != fault.Conflict {
		return false
	}
	v.Outcome, v.Class, v.Message, v.Tree, v.TreeKind = "refused", f.Code, f.Detail, "", ""
	if p, ok := f.Context["path"].(string); ok {
		v.Path = patch.Show(p)
	}
	if all, ok := f.Context["paths"].([]string); ok && len(all) > 0 && v.Path == "" {
		v.Path = patch.Show(all[0])
	}
	return true
}

// advice is what to do about a hint.
func advice(h patch.Hint) string {
	all := patch.Hints()
	if i := slices.IndexFunc(all, func(i patch.HintInfo) bool { return i.Hint == h }); i >= 0 {
		return all[i].Advice
	}
	return ""
}

// print writes the verdict and says how the program ends.
func (v verdict) print(t terminal, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(t.out).Encode(v)
	} else {
		_, err = fmt.Fprint(t.out, v.text())
	}
	switch {
	case err != nil:
		return fmt.Errorf("the answer cannot be written: %w", err)
	case v.Outcome == "refused":
		return exitError{Code: cli.Failed}
	}
	return nil
}

func (v verdict) text() string {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s  %s\n", name, value)
		}
	}
	row("outcome", v.Outcome)
	row("class", v.Class)
	row("meaning", v.Meaning)
	row("message", v.Message)
	if v.Line > 0 {
		row("line", fmt.Sprint(v.Line))
	}
	row("path", v.Path)
	row("hint", v.Hint)
	row("advice", v.Advice)
	if len(v.Suggestion) > 0 {
		row("mended", "a repaired patch is offered: roundtable patch explain --mended OUT FILE")
	}
	for i, r := range v.Reasons {
		if i > 0 {
			row("also", strings.TrimSpace(r.Class+" "+r.Path)+": "+r.Message)
		}
	}
	for _, s := range v.States {
		row("state", s.Path+" "+string(s.State))
	}
	for _, f := range v.Files {
		row("file", describeFile(f))
	}
	for _, n := range v.Notes {
		row("note", describeNote(n))
	}
	row("tree", strings.TrimSpace(v.Tree+" "+v.TreeKind))
	return b.String()
}

func describeFile(f wire.PatchFile) string {
	what := f.Op + " " + f.Path
	if f.OldPath != "" && f.NewPath != "" && f.OldPath != f.NewPath {
		what = f.Op + " " + f.OldPath + " to " + f.NewPath
	}
	if f.OldMode != "" && f.NewMode != "" && f.OldMode != f.NewMode {
		what += " mode " + f.OldMode + " to " + f.NewMode
	}
	if f.Binary {
		return what + " binary"
	}
	return fmt.Sprintf("%s +%d -%d", what, f.Added, f.Removed)
}

func describeNote(n patch.Note) string {
	s := strings.TrimSpace(n.String() + " " + n.Path)
	if n.Line > 0 {
		s += fmt.Sprintf(" (line %d)", n.Line)
	}
	if n.Detail != "" {
		s += ": " + n.Detail
	}
	return s
}
