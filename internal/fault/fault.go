// Package fault is the one kind of error that crosses packages on purpose.
//
// What always holds: the text of a fault may be shown to whoever asked, and an
// error that is no fault may not. Each transport maps every Kind in one table
// and nothing but the Kind decides an HTTP status, a tool error or an exit
// code; programs tell faults of one Kind apart by Code.
package fault

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A Kind is the class of an error: all that a transport may act on.
type Kind string

// The kinds. Each transport maps every one of them in one table.
const (
	Internal        Kind = "internal"        // the program's or the machine's fault; the text is for the operator only
	Invalid         Kind = "invalid"         // the input can never be right
	Unauthenticated Kind = "unauthenticated" // no credential, or one that is not valid
	Forbidden       Kind = "forbidden"       // a valid credential that may not
	NotFound        Kind = "not_found"       // no such thing, or none the caller may know of
	Conflict        Kind = "conflict"        // not in the present state; may be later
	TooLarge        Kind = "too_large"       // past a bound of size
	Refused         Kind = "refused"         // understood, and its content is refused
	Limit           Kind = "limit"           // past a bound of rate or number; later is fine
	Unavailable     Kind = "unavailable"     // the service cannot now; the same call may be sent again
)

// Kinds lists all kinds, for tables that must cover every one.
var Kinds = []Kind{Internal, Invalid, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, Refused, Limit, Unavailable}

// A Field is one thing that is wrong with the input.
type Field struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901) into the input
	Message string `json:"message"`
}

// A Step is a call that would help. Args are complete where they can be known.
type Step struct {
	Op   string         `json:"op"`
	Args map[string]any `json:"args"`
	Who  string         `json:"who,omitempty"` // who may do it, where that is not the caller
	Why  string         `json:"why,omitempty"`
}

// Error is an error whose text may be shown to whoever asked.
type Error struct {
	Kind    Kind
	Code    string         // stable and specific, such as "claim_conflict"; the Kind's own name where there is none
	Detail  string         // one or two sentences: what is wrong and where
	Fields  []Field        // of an invalid input
	Next    []Step         // what would help
	Context map[string]any // facts for programs, such as the holder of a claim; JSON-able
}

func (e *Error) Error() string { return e.Detail }

// Errorf returns an Error of a kind with a code.
func Errorf(k Kind, code, format string, args ...any) *Error {
	return &Error{Kind: k, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// With returns e with one more fact for programs. It changes e, which the
// caller has just made.
func (e *Error) With(key string, value any) *Error {
	if e.Context == nil {
		e.Context = map[string]any{}
	}
	e.Context[key] = value
	return e
}

// Then returns e with one more step that would help. It changes e, which the
// caller has just made.
func (e *Error) Then(op string, args map[string]any, who, why string) *Error {
	if args == nil {
		args = map[string]any{}
	}
	e.Next = append(e.Next, Step{Op: op, Args: args, Who: who, Why: why})
	return e
}

// Steps returns steps with more behind them; a call that is there already is
// not named again.
func Steps(steps, more []Step) []Step {
	for _, s := range more {
		if !slices.ContainsFunc(steps, func(o Step) bool { return o.Op == s.Op && reflect.DeepEqual(o.Args, s.Args) }) {
			steps = append(steps, s)
		}
	}
	return steps
}

// At returns e with one more wrong field. It changes e, which the caller has
// just made.
func (e *Error) At(pointer, message string) *Error {
	e.Fields = append(e.Fields, Field{Pointer: pointer, Message: message})
	return e
}

// KindOf returns err's kind: that of the Error in its chain, else Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the code of the Error in err's chain, else "internal".
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return "internal"
}
