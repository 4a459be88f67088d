package patch

import "bytes"

// A Conversion is what Git does between a blob and its file in the work tree.
type Conversion string

// The conversions.
const (
	NoConversion   Conversion = ""       // bytes are bytes
	CRLFConversion Conversion = "crlf"   // the blob has LF, the file CR LF
	CRLFOfText     Conversion = "text"   // the same, but of what looks binary bytes are bytes
	FilterAttr     Conversion = "filter" // a filter, ident or encoding: never run, so refused
)

// A Converter is a Tree that knows Git's attributes.
type Converter interface {
	// Conversion returns what stands on the path, whether it exists or not.
	Conversion(path string) (Conversion, error)
}

// A conversion is what is done with the line ends of one section's two paths.
type conversion struct{ old, new Conversion }

// conversion asks the tree; nil when the section is refused for it.
func (a *applier) conversion(i int, old, new string) (*conversion, error) {
	t, ok := a.raw.(Converter)
	if p := a.parts[i]; !ok || p.before.Kind == Symlink || p.after.Kind == Symlink {
		return &conversion{}, nil // a link's text is never converted
	}
	var of [2]Conversion
	for k, path := range []string{old, new} {
		c, err := t.Conversion(path)
		if err != nil {
			return nil, err
		}
		if c == FilterAttr {
			a.refuse(i, AttrFilter, a.sections[i].line, path, "a filter, ident or encoding attribute stands on the path; such files are not changed by patches")
			return nil, nil
		}
		of[k] = c
	}
	return &conversion{of[0], of[1]}, nil
}

// converts reports whether the conversion is of these bytes.
func (c Conversion) converts(data []byte) bool {
	return c == CRLFConversion || c == CRLFOfText && !LooksBinary(data)
}

// clean gives the blob of a file of the work tree.
func (v *conversion) clean(data []byte, c *section) ([]byte, *Refusal) {
	if c.creates() || !v.old.converts(data) {
		return data, nil
	}
	lf := bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if !bytes.Equal(toCRLF(lf), data) {
		return nil, refuse(EOLMismatch, 0, "", "attributes convert the file to CRLF, but not all its lines end in CRLF.").with(HintEOL)
	}
	return lf, nil
}

// smudge gives the file of the work tree for a blob.
func (v *conversion) smudge(blob []byte) ([]byte, *Refusal) {
	if !v.new.converts(blob) {
		return blob, nil
	}
	if bytes.Contains(blob, []byte("\r\n")) {
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

// LooksBinary is Git's guess at whether bytes are no text: a NUL, a CR that
// ends no line, or more than one control character for 128 others.
func LooksBinary(b []byte) bool {
	printable, control := 0, 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\r':
			if i+1 == len(b) || b[i+1] != '\n' {
				return true
			}
			i++
		case c == '\n':
		case c == 0:
			return true
		case c == '\b', c == '\t', c == 0x1b, c == '\f':
			printable++
		case c < 0x20, c == 0x7f:
			control++
		default:
			printable++
		}
	}
	if len(b) > 0 && b[len(b)-1] == 0x1a { // an old end-of-file mark
		control--
	}
	return printable>>7 < control
}
