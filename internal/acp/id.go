package acp

import (
	"encoding/json"
	"strconv"
)

// An ID is the id of a request exactly as it stands on the wire, so that an
// answer repeats it with its type. The zero ID is that of a notification; null
// is an id of its own. IDs are comparable.
type ID struct{ raw string }

// NullID is the id null: that of an answer to what could not be read.
func NullID() ID { return ID{"null"} }

// StringID is a string as an id.
func StringID(s string) ID {
	raw, err := Marshal(s)
	if err != nil {
		return NullID() // a string always marshals
	}
	return ID{string(raw)}
}

// IntID is an integer as an id.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// ParseID reads an id: a string, an integer of 64 bits or null.
func ParseID(raw json.RawMessage) (ID, bool) {
	switch {
	case len(raw) == 0:
		return ID{}, false
	case raw[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ID{}, false
		}
		return StringID(s), true
	case string(raw) == "null":
		return NullID(), true
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return ID{}, false
	}
	return IntID(n), true
}

// IsZero reports whether there is no id at all.
func (id ID) IsZero() bool { return id.raw == "" }

// IsNull reports whether the id is null.
func (id ID) IsNull() bool { return id.raw == "null" }

// IsString reports whether the id is a string.
func (id ID) IsString() bool { return id.raw != "" && id.raw[0] == '"' }

// Text is the id without its type: what 1 and "1" have in common.
func (id ID) Text() string {
	var s string
	if id.IsString() && json.Unmarshal([]byte(id.raw), &s) == nil {
		return s
	}
	return id.raw
}

// String is the id as JSON.
func (id ID) String() string { return id.raw }

// MarshalJSON writes the id as it came.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte("null"), nil
	}
	return []byte(id.raw), nil
}
