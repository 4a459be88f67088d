package main

import (
	"context"
	"encoding/json"
	"errors"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

type patchExplainCmd struct {
	File       string `arg:"" help:"The patch; - is standard input." type:"existingfile"`
	Strip      *int   `help:"Components to take from each name; default: found from the patch, else 1."`
	StrictText bool   `help:"Refuse bidirectional, invisible and control characters in added lines."`
	SHA256     bool   `help:"The patch is of a repository with SHA-256 ids." name:"sha256"`
	Mended     string `help:"Write the repaired patch that is offered for a refused one into this file, which is not there yet." type:"path"`
	JSON       bool   `help:"Print JSON." name:"json"`
}

// Run says what the patch states, by itself: no folder is looked at.
func (c *patchExplainCmd) Run(ctx context.Context, t terminal) error {
	return verdictless(c.run(ctx, t))
}

func (c *patchExplainCmd) run(ctx context.Context, t terminal) error {
	data, err := readPatch(ctx, t, c.File)
	if err != nil {
		return err
	}
	o, err := engineFlags{Strip: c.Strip, StrictText: c.StrictText, StrictOID: true}.options(c.SHA256)
	if err != nil {
		return err
	}
	x := fitting{}
	x.patch, err = patch.Parse(data, o)
	guessed := false
	if err == nil {
		if _, known := x.patch.Level(); !known {
			one := 1
			o.Strip, guessed = &one, true
			x.patch, err = patch.Parse(data, o)
		}
	}
	if r, ok := errors.AsType[*patch.Refusal](err); ok {
		x.patch, x.refused, err = nil, r, nil
	}
	if err != nil {
		return err
	}
	v := newVerdict(x, data)
	if x.patch != nil {
		v.Outcome, v.Notes = "parsed", append(v.Notes, x.patch.Findings()...)
		v.strictText(c.StrictText)
	}
	if guessed {
		v.Notes = append(v.Notes, patch.Note{Kind: "strip_open", Detail: "only a folder can tell how many components to strip; the names are shown without one"})
	}
	if c.Mended != "" {
		if err := c.mend(t, v.Suggestion); err != nil {
			return err
		}
	}
	return v.print(t, c.JSON)
}

// strictText makes a refusal of the first finding, where that is wanted.
func (v *verdict) strictText(on bool) {
	if on && len(v.Notes) > 0 {
		n := v.Notes[0]
		v.refuse(&patch.Refusal{Class: patch.Class(n.Kind), Detail: n.Detail, Line: n.Line, Path: n.Path})
	}
}

func (c *patchExplainCmd) mend(t terminal, suggestion []byte) error {
	if len(suggestion) == 0 {
		return fault.Errorf(fault.Invalid, "invalid_flag", "--mended: no repaired patch is offered for this one")
	}
	return writeNew(t, c.Mended, suggestion)
}

type patchReverseCmd struct {
	Dir  string `help:"The folder as it was before the patch, or as the patch made it." required:"" type:"existingdir"`
	File string `arg:"" help:"The patch; - is standard input." type:"existingfile"`
	Out  string `help:"Write the reverse into this file, which is not there yet; default: standard output." type:"path"`
	engineFlags
}

// reversed is what reverse answers with --json: the verdict, and the reverse
// where no file was named for it.
type reversed struct {
	verdict
	Reverse []byte `json:"reverse,omitempty"`
}

// Run writes the patch that takes the folder after the patch back to what it
// was before, byte for byte.
func (c *patchReverseCmd) Run(ctx context.Context, t terminal) error {
	return verdictless(c.run(ctx, t))
}

func (c *patchReverseCmd) run(ctx context.Context, t terminal) (err error) {
	data, err := readPatch(ctx, t, c.File)
	if err != nil {
		return err
	}
	x, err := c.look(ctx, c.Dir, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	back, err := c.reverse(&x, data)
	v := reversed{verdict: newVerdict(x, data)}
	switch {
	case err != nil:
		return err
	case back == nil && c.JSON:
		return v.print(t, true)
	case back == nil:
		t.out = t.err // standard output is for the patch
		return v.print(t, false)
	case c.JSON && c.Out == "":
		v.Reverse = back
		return json.NewEncoder(t.out).Encode(v)
	}
	if err := writeNew(t, c.Out, back); err != nil {
		return err
	}
	if c.JSON {
		return v.print(t, true)
	}
	return nil
}

// reverse makes the patch from the fitting; nil if the patch is refused.
func (c *patchReverseCmd) reverse(x *fitting, data []byte) ([]byte, error) {
	if x.refused != nil && x.refused.Class.Stage() == patch.StageApply {
		return c.undo(x, data)
	}
	if x.result == nil {
		return nil, nil
	}
	if err := c.oneWay(x, data); err != nil {
		return nil, err
	}
	images, err := patch.Images(x.result.Changes, x.tree)
	if err != nil {
		return nil, err
	}
	for i, m := range images {
		images[i] = patch.Image{Path: m.Path, Before: m.After, After: m.Before, Old: m.New, New: m.Old}
	}
	if images, err = repo.KeptImages(x.tree, images); err != nil {
		return nil, err
	}
	return patch.Format(images, x.sha256)
}

// oneWay refuses to guess where the folder may as well be as the patch leaves
// it: the two have other patches back.
func (c *patchReverseCmd) oneWay(x *fitting, data []byte) error {
	o, err := c.options(x.sha256)
	if err != nil {
		return err
	}
	_, err = patch.Undo(data, o, x.tree)
	if _, refused := errors.AsType[*patch.Refusal](err); refused {
		return nil
	}
	if err == nil {
		err = fault.Errorf(fault.Unavailable, "unknown_outcome", "the patch fits the folder both as one that it has not changed yet and as one that it has, and the two have other reverses: nothing is written")
	}
	return err
}

// undo makes the patch where the folder is as the patch leaves it: that it
// does not apply there is then no refusal.
func (c *patchReverseCmd) undo(x *fitting, data []byte) ([]byte, error) {
	o, err := c.options(x.sha256)
	if err != nil {
		return nil, err
	}
	images, err := patch.Undo(data, o, x.tree)
	switch r, refused := errors.AsType[*patch.Refusal](err); {
	case refused && x.refused.Class == patch.AlreadyApplied:
		x.refused = r
		return nil, nil
	case refused:
		return nil, nil
	case err != nil:
		return nil, err
	}
	x.refused = nil
	return patch.Format(images, x.sha256)
}
