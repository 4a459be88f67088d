package commands

import (
	"reflect"

	"roundtable/events"
	"roundtable/internal/redact"
)

// redacted returns the payload with known secrets taken out of its texts: what
// is in the log stays there.
func redacted(p events.Payload) events.Payload {
	v := redact.Struct(struct{ P events.Payload }{p}).P
	if reflect.TypeOf(v) != reflect.TypeOf(p) {
		panic("commands: redaction changed a payload's type")
	}
	return v
}
