package patch

import "bytes"

// A Conversion is what Git does between a blob and its file in the work tree.
type Conversion string

// The conversions.
const (
	NoConversion   Conversion = ""       // bytes are bytes
	CRLFConversion Conversion = "crlf"   // the blob has LF, the file CR LF
	FilterAttr     Conversion = "filter" // a filter, ident or encoding: never run, so refused
)

// A Converter is a Tree that knows Git's attributes.
type Converter interface {
	// Conversion returns what stands on the path, whether it exists or not.
	Conversion(path string) (Conversion, error)
}

// A conversion is the line ends of one section's two paths.
type conversion struct{ old, new bool }

// conversion asks the tree; nil when the section is refused for it.
func (a *applier) conversion(i int, old, new string) (*conversion, error) {
	t, ok := a.raw.(Converter)
	if p := a.parts[i]; !ok || p.before.Kind == Symlink || p.after.Kind == Symlink {
		return &conversion{}, nil // a link's text is never converted
	}
	var crlf [2]bool
	for k, path := range []string{old, new} {
		c, err := t.Conversion(path)
		if err != nil {
			return nil, err
		}
		if c == FilterAttr {
			a.refuse(i, AttrFilter, a.sections[i].line, path, "a filter, ident or encoding attribute stands on the path; such files are not changed by patches")
			return nil, nil
		}
		crlf[k] = c == CRLFConversion
	}
	return &conversion{crlf[0], crlf[1]}, nil
}

// converts reports whether the conversion touches these bytes: not those of
// binary files.
func converts(on bool, data []byte, c *section) bool {
	return on && c.bin == nil && bytes.IndexByte(data, 0) < 0
}

// clean gives the blob of a file of the work tree.
func (v *conversion) clean(data []byte, c *section) ([]byte, *Refusal) {
	if !converts(v.old, data, c) || c.creates() {
		return data, nil
	}
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(toCRLF(lf), data) {
		return nil, refuse(EOLMismatch, 0, "", "attributes convert the file to CRLF, but not all its lines end in CRLF.").with(HintEOL)
	}
	return lf, nil
}

// smudge gives the file of the work tree for a blob.
func (v *conversion) smudge(blob []byte, c *section) ([]byte, *Refusal) {
	if !converts(v.new, blob, c) {
		return blob, nil
	}
	if bytes.IndexByte(blob, '\r') >= 0 {
		return nil, refuse(EOLMismatch, 0, "", "attributes convert the file to CRLF, but the patch adds carriage returns of its own.").with(HintEOL)
	}
	return toCRLF(blob), nil
}

// lfForm gives the file with LF for CR LF, if that loses nothing: every line
// ends in CR LF, and there is one.
func lfForm(data []byte) ([]byte, bool) {
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return lf, len(lf) < len(data) && bytes.Equal(toCRLF(lf), data)
}

func toCRLF(lf []byte) []byte {
	return bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n"))
}
