package projections

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/sqlite"
)

// A Past is all tables as they stood at one position of the log.
type Past struct {
	Position int64
	db       *sql.DB
}

// At makes the tables that the log gave at position, by the same projectors
// that make the live ones, in a scratch file that ends with Close. A position
// that the log has not reached is Invalid.
func At(ctx context.Context, log eventlog.Source, position int64) (*Past, error) {
	head, _, err := log.Head(ctx)
	if err != nil {
		return nil, err
	}
	if position < 0 || position > head {
		return nil, fault.Errorf(fault.Invalid, "invalid_position", "position %d is not in the log, which reaches from 0 to %d", position, head).With("head", head)
	}
	db, err := sqlite.OpenScratch(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, log, db, All(), position); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Past{position, db}, nil
}

// Close frees the scratch file.
func (p *Past) Close() error { return p.db.Close() }

// Write writes the state as one JSON object: {"position": N, "<table>": [row,
// …], …}, a row being an object of its columns, in the order of the log.
func (p *Past) Write(ctx context.Context, w io.Writer) error {
	out := &lines{w: w}
	out.printf("{\n\"position\": %d", p.Position)
	for _, pr := range All() {
		for _, table := range pr.Tables {
			out.printf(",\n%q: [", table)
			sep := "\n"
			err := dump(ctx, p.db, table, func(row []byte) error {
				out.printf("%s%s", sep, row)
				sep = ",\n"
				return out.err
			})
			if err != nil {
				return err
			}
			out.printf("]")
		}
	}
	out.printf("\n}\n")
	return out.err
}

// lines keeps the first error of writing.
type lines struct {
	w   io.Writer
	err error
}

func (l *lines) printf(format string, args ...any) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.w, format, args...)
	}
}

// dump calls f with each row of a table as a JSON object, in the order of the
// table's key.
func dump(ctx context.Context, db *sql.DB, table string, f func([]byte) error) (err error) {
	rs, err := db.QueryContext(ctx, `SELECT * FROM `+table+` ORDER BY 1, 2`) // the key is one column, or two
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rs.Close()) }()
	columns, err := rs.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rs.Next() {
		if err := rs.Scan(into...); err != nil {
			return err
		}
		row, err := rowJSON(columns, values)
		if err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rs.Err()
}

func rowJSON(columns []string, values []any) ([]byte, error) {
	var b bytes.Buffer
	sep := "{"
	for i, c := range columns {
		v, err := json.Marshal(values[i])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s%q:%s", sep, c, v)
		sep = ","
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
