package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"roundtable/events"
)

// Export writes records as lines of JSON, each as it is stored.
func Export(w io.Writer, records iter.Seq2[events.Record, error]) error {
	b := bufio.NewWriterSize(w, 1<<16)
	enc := newEncoder(b)
	for r, err := range records {
		if err != nil {
			return err
		}
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("export event %d: %w", r.Position, err)
		}
	}
	return b.Flush()
}

func newEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // data are hashed as they are, escapes and all
	return enc
}

// maxLine bounds a line of an export, in bytes.
const maxLine = 64 << 20

// Import returns the records of an export. A line that is not exactly what
// Export writes for a record is an error that names the line, and nothing
// comes after it: a field that is unknown, repeated or spelled otherwise is
// covered by no hash and would only mislead who reads the file.
func Import(r io.Reader) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 1<<16), maxLine)
		var again bytes.Buffer
		enc := newEncoder(&again)
		n := 0
		for lines.Scan() {
			n++
			rec, err := parse(lines.Bytes(), enc, &again)
			if err != nil {
				yield(events.Record{}, fmt.Errorf("export, line %d: %w", n, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(events.Record{}, fmt.Errorf("export, after line %d: %w", n, err))
		}
	}
}

// parse reads a line, and writes it again through enc into again to compare.
func parse(line []byte, enc *json.Encoder, again *bytes.Buffer) (rec events.Record, err error) {
	if err := json.Unmarshal(line, &rec); err != nil {
		return rec, err
	}
	again.Reset()
	if err := enc.Encode(rec); err != nil {
		return rec, err
	}
	if !bytes.Equal(bytes.TrimSuffix(again.Bytes(), []byte("\n")), line) {
		return rec, fmt.Errorf("this is not as position %d was exported", rec.Position)
	}
	return rec, nil
}
