package fault

import "errors"

// A Problem is how a fault is written down for a client: the same object over
// HTTP (RFC 9457, application/problem+json), MCP and the command line's JSON.
type Problem struct {
	Type    string         `json:"type"`   // always "about:blank": Code is what programs branch on
	Title   string         `json:"title"`  // the status in words
	Status  int            `json:"status"` // the HTTP status of the fault's Kind
	Code    string         `json:"code"`
	Detail  string         `json:"detail"`
	Errors  []Field        `json:"errors"`
	Next    []Step         `json:"next"`
	Context map[string]any `json:"context,omitempty"`
	ID      string         `json:"error_id,omitempty"` // of an internal error, to be looked up in the service's log
}

// status is the HTTP status of each Kind. No two kinds share one, so that a
// kind survives the wire.
var status = map[Kind]int{
	Internal:        500,
	Invalid:         400,
	Unauthenticated: 401,
	Forbidden:       403,
	NotFound:        404,
	Conflict:        409,
	TooLarge:        413,
	Refused:         422,
	Limit:           429,
	Unavailable:     503,
}

var title = map[Kind]string{
	Internal:        "Internal error",
	Invalid:         "Invalid input",
	Unauthenticated: "Authentication required",
	Forbidden:       "Forbidden",
	NotFound:        "Not found",
	Conflict:        "Conflict",
	TooLarge:        "Too large",
	Refused:         "Refused",
	Limit:           "Too many",
	Unavailable:     "Unavailable",
}

// Status returns the HTTP status of k.
func (k Kind) Status() int { return status[k] }

// KindOfStatus returns the Kind whose HTTP status is code; ok is false where
// none has it.
func KindOfStatus(code int) (k Kind, ok bool) {
	for k, s := range status {
		if s == code {
			return k, true
		}
	}
	return Internal, false
}

// ProblemOf returns what a client may see of err. Of an error that is no
// fault, or is an internal one, that is only id, under which the caller has
// logged it.
func ProblemOf(err error, id string) Problem {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind == Internal {
		return Problem{Type: "about:blank", Title: title[Internal], Status: status[Internal], Code: "internal",
			Detail: "The call failed inside the service; its log has more under the id " + id + ".",
			Errors: []Field{}, Next: []Step{}, ID: id}
	}
	p := Problem{Type: "about:blank", Title: title[e.Kind], Status: status[e.Kind], Code: e.Code, Detail: e.Detail,
		Errors: append([]Field{}, e.Fields...), Next: append([]Step{}, e.Next...), Context: e.Context}
	if p.Code == "" {
		p.Code = string(e.Kind)
	}
	return p
}

// Fault returns the error that p was written from. A status that no Kind has
// gives an Internal one.
func (p Problem) Fault() *Error {
	k, _ := KindOfStatus(p.Status)
	e := &Error{Kind: k, Code: p.Code, Detail: p.Detail, Context: p.Context}
	if len(p.Errors) > 0 {
		e.Fields = p.Errors
	}
	if len(p.Next) > 0 {
		e.Next = p.Next
	}
	if p.ID != "" {
		e.With("error_id", p.ID)
	}
	return e
}
