package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A member of a JSON object, as it was sent: the name with its quotes.
type member struct {
	name  string
	key   []byte
	value json.RawMessage
}

var errNoObject = errors.New("no JSON object")

// members takes a JSON object apart without changing a byte of its names and
// values: whoever decodes them must still see a name that is there twice, or
// a text that is not UTF-8.
func members(raw []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	var out []member
	for d.More() {
		from := d.InputOffset()
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errNoObject
		}
		m := member{name: name, key: bytes.Trim(raw[from:d.InputOffset()], ", \t\r\n")}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if rest := bytes.Trim(raw[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, errNoObject
	}
	return out, nil
}

// object puts members together again.
func object(ms []member) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m.key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
