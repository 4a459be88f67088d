// Package symbol finds the symbols of a source file: functions, methods,
// types and the like, with the lines that they span.
//
// What always holds: any bytes are taken; what cannot be read is said in the
// answer and is no error. Work and memory are bounded by Limits, whatever the
// text is. A symbol is only given where its text parses: of a file that does
// not parse, those that end before the first fault. The order is that of the
// text, what contains others before them.
package symbol

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Kind is what a symbol is.
type Kind string

// The kinds, for all languages: a language that has another word for one has
// it under the nearest.
const (
	Function  Kind = "function"
	Method    Kind = "method" // constructors too
	Type      Kind = "type"   // structs, unions and aliases too
	Class     Kind = "class"  // records too
	Interface Kind = "interface"
	Trait     Kind = "trait"
	Enum      Kind = "enum"
	Module    Kind = "module" // or namespace
	Constant  Kind = "constant"
	Variable  Kind = "variable"
	Field     Kind = "field"
	Macro     Kind = "macro"
)

// A Symbol is one named part of a file.
type Symbol struct {
	Name  string // qualified by what contains it, such as Type.Method; not always unique
	Kind  Kind
	First int // line, 1-based; comments, decorators and attributes directly before it belong to it
	Last  int
}

// A Status says how far a file could be read.
type Status string

// The statuses.
const (
	OK          Status = "ok"
	Unsupported Status = "unsupported" // no language that symbols are read of
	Unparsed    Status = "unparsed"    // what is before the fault is given
	Binary      Status = "binary"
	TooLarge    Status = "too_large" // beyond a limit
)

// A File is what was found in one.
type File struct {
	Language string // "" if it is unsupported
	Status   Status
	Reason   string // why the status is not OK
	Symbols  []Symbol
}

// Limits bound the work on one file. Zero fields are the defaults.
type Limits struct {
	Bytes   int           // of the file: 1 MiB
	Symbols int           // 10,000
	Depth   int           // of symbols in symbols: 50
	Time    time.Duration // of the processor, for parsing: 2 s; by the clock at most 15 times as much
}

func (l Limits) filled() Limits {
	if l.Bytes == 0 {
		l.Bytes = 1 << 20
	}
	if l.Symbols == 0 {
		l.Symbols = 10_000
	}
	if l.Depth == 0 {
		l.Depth = 50
	}
	if l.Time == 0 {
		l.Time = 2 * time.Second
	}
	return l
}

// maxName bounds a qualified name, in bytes. A symbol with a longer one is not
// given.
const maxName = 512

// languages are those that symbols are read of, by the end of a file's name.
var languages = map[string]string{
	".go": "go",
	".py": "python", ".pyi": "python",
	".js": "javascript", ".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescript",
	".rs":   "rust",
	".java": "java",
}

// LanguageOf names the language of a file by its name; "" if symbols are not
// read of it.
func LanguageOf(name string) string { return languages[path.Ext(name)] }

// Read finds the symbols of the file with this name and content. Its error is
// ctx's. Text that comes from others is for a Reader, but for Go.
func Read(ctx context.Context, name string, data []byte, l Limits) (File, error) {
	if err := ctx.Err(); err != nil {
		return File{}, err
	}
	l = l.filled()
	f := File{Language: LanguageOf(name), Status: OK}
	if f, done := f.early(data, l); done {
		return f, nil
	}
	if f.Language == "go" {
		return f.readGo(data, l), nil
	}
	return f.readTree(ctx, path.Ext(name), data, l)
}

// early says of what is not parsed why.
func (f File) early(data []byte, l Limits) (File, bool) {
	switch {
	case f.Language == "":
		return f.without(Unsupported, "symbol_unsupported: symbols are read of Go, Python, JavaScript, TypeScript, Rust and Java"), true
	case bytes.IndexByte(data, 0) >= 0:
		return f.without(Binary, "it holds a NUL byte"), true
	case len(data) > l.Bytes:
		return f.without(TooLarge, "it has %d bytes, and at most %d are read for symbols", len(data), l.Bytes), true
	case !utf8.Valid(data):
		return f.without(Unparsed, "line %d is not UTF-8", lineOfBad(data)), true
	}
	return f, false
}

// lineOfBad is the line of the first byte that is not UTF-8.
func lineOfBad(data []byte) int {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return bytes.Count(data[:at], []byte("\n")) + 1
}

// A list gathers symbols up to the limits.
type list struct {
	limits Limits
	all    []Symbol
	full   bool
	deep   bool
}

// add notes a symbol and returns its index, -1 if it is not one to give.
func (l *list) add(s Symbol) int {
	if s.Name == "" || len(s.Name) > maxName || l.full {
		return -1
	}
	if len(l.all) == l.limits.Symbols {
		l.full = true
		return -1
	}
	l.all = append(l.all, s)
	return len(l.all) - 1
}

// give puts what was gathered into f. broken is the line of the first fault, 0
// if there is none.
func (f File) give(l *list, broken int, fault string) File {
	f.Symbols = l.all
	if broken > 0 {
		f.Status, f.Reason = Unparsed, fault
		f.Symbols = slices.DeleteFunc(f.Symbols, func(s Symbol) bool { return s.Last >= broken })
	}
	slices.SortStableFunc(f.Symbols, func(a, b Symbol) int {
		if a.First != b.First {
			return a.First - b.First
		}
		return b.Last - a.Last
	})
	switch {
	case l.full:
		return f.without(TooLarge, "it has more than %d symbols", l.limits.Symbols)
	case l.deep:
		return f.without(TooLarge, "its symbols are nested deeper than %d", l.limits.Depth)
	}
	return f
}

// qualified is a name in what contains it.
func qualified(in, name string) string {
	if in == "" || name == "" {
		return name
	}
	return in + "." + name
}

// compact takes blanks out of a name that is an expression.
func compact(text string) string { return strings.Join(strings.Fields(text), "") }
