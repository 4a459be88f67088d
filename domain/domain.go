// Package domain is the rules: for each aggregate its state, how an event
// changes it (Evolve), and what may happen next (a method for each command).
//
// What always holds: all of it is pure. Nothing here reads a clock, a file or
// the database, makes an id, or takes a context; what a rule needs it is given.
// A rule returns what would happen or a fault, and never both. A state that is
// held by several readers is never changed in place: an aggregate whose stream
// has no end is cloned before it is folded further, all others copy what they
// change.
package domain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"roundtable/events"
	"roundtable/internal/fault"
)

// Bounds on free text, in bytes.
const (
	MaxTitle  = 300
	MaxText   = 64 << 10
	MaxReason = 16 << 10
)

// foreign panics: an event reached an aggregate that it is not of. A test
// feeds every aggregate every event.
func foreign(aggregate string, e events.Payload) {
	panic(fmt.Sprintf("domain: %s cannot evolve by %T", aggregate, e))
}

// line checks a text of one line, such as a title: it is shown in tables and
// sentences, where nothing in it may end the line or hide what it says.
func line(field, s string, limit int, needed bool) error {
	if err := text(field, s, limit, needed); err != nil {
		return err
	}
	if i := strings.IndexFunc(s, unseen); i >= 0 {
		return fault.Errorf(fault.Invalid, "invalid_field", "%s is one line of what can be seen: a control, line break, invisible or bidirectional character stands at byte %d", field, i).
			At("/"+field, "must be one line without control, invisible or bidirectional characters")
	}
	return nil
}

// unseen reports whether a rune has no shape of its own or changes that of the
// runes around it. The joiners stay: scripts and emoji are written with them.
func unseen(r rune) bool {
	const joiner, nonJoiner = 0x200d, 0x200c
	return r != joiner && r != nonJoiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// text checks a text: not blank if it is needed, within its bound.
func text(field, s string, limit int, needed bool) error {
	switch {
	case needed && strings.TrimSpace(s) == "":
		return fault.Errorf(fault.Invalid, "invalid_field", "%s must not be blank", field).At("/"+field, "must not be blank")
	case len(s) > limit:
		return fault.Errorf(fault.Invalid, "invalid_field", "%s has %d bytes; the bound is %d", field, len(s), limit).At("/"+field, fmt.Sprintf("at most %d bytes", limit))
	case !utf8.ValidString(s):
		return fault.Errorf(fault.Invalid, "invalid_field", "%s is not UTF-8", field).At("/"+field, "must be UTF-8")
	case strings.ContainsRune(s, 0):
		return fault.Errorf(fault.Invalid, "invalid_field", "%s has a NUL", field).At("/"+field, "must not have a NUL")
	}
	return nil
}

// firstOf returns the first error that is one.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// oneOf checks a word of a closed list.
func oneOf(field, s string, words ...string) error {
	for _, w := range words {
		if s == w {
			return nil
		}
	}
	return fault.Errorf(fault.Invalid, "invalid_field", "%s is %q; it is one of %s", field, s, strings.Join(words, ", ")).
		At("/"+field, "one of "+strings.Join(words, ", "))
}
