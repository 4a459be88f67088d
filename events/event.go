// Package events is the vocabulary of the log: what can have happened, and how
// it is written down. It knows no rules and no storage; every other package
// may import it and it imports none of them.
//
// What always holds: a stored type name is a literal and no Go name; a stored
// field is never renamed, retyped or removed; every schema ever written can be
// decoded; no payload holds a secret, a patch, a log or a file, only the
// digests under which these are kept.
//
// Free text (titles, summaries, reasons) stands in the payloads and is
// declared unerasable: it is what an auditor reads, and views are rebuilt from
// the log alone. Known secrets are redacted before it gets here.
package events

import (
	"encoding/json"
	"time"

	"github.com/oklog/ulid/v2"
)

// A Payload says what happened. Payloads are plain JSON-able structs; their
// past is part of the log for ever, so fields are added and never renamed.
// Every payload type is listed in types.go.
type Payload interface{ Stream() Stream }

// Stream names the sequence of events of one aggregate, as "kind/id".
type Stream string

// Meta is what is known of an event besides what happened. All events of one
// append share it.
type Meta struct {
	Workspace   string // id of the workspace it concerns; "" for the server's own affairs
	Actor       string // id of the principal that asked, or System
	Session     string // the actor's session, or ""
	Command     string // idempotency key of the command; unique per actor
	Cause       string // id of the event reacted to, or ""
	Correlation string // shared by all that follows from one request
}

// System is the actor of what the service does by itself.
const System = "system"

// An Event is a payload with its place in the log.
type Event struct {
	Position int64 // place in the whole log: 1, 2, 3, …
	ID       ulid.ULID
	Version  int64 // place in its stream: 1, 2, 3, …
	Time     time.Time
	Meta
	Payload
}

// A Record is an event as it is stored: what is hashed, exported, streamed and
// verified. Data are the stored bytes and are never encoded again.
type Record struct {
	Position    int64           `json:"position"`
	ID          string          `json:"id"`
	Workspace   string          `json:"workspace_id"`
	Stream      Stream          `json:"stream"`
	Version     int64           `json:"version"`
	Type        string          `json:"type"`
	Schema      int             `json:"schema"`
	Time        time.Time       `json:"time"` // UTC, nanoseconds
	Actor       string          `json:"actor"`
	Session     string          `json:"session"`
	Command     string          `json:"command_id"`
	Cause       string          `json:"causation_id"`
	Correlation string          `json:"correlation_id"`
	Data        json.RawMessage `json:"data"`
	PrevHash    string          `json:"prev_hash"` // lowercase hex; of the first event "" stands for no predecessor
	Hash        string          `json:"hash"`
}

// Event returns the record with its payload decoded and brought up to the
// newest schema. It fails on a type or schema that this program does not know.
func (r Record) Event() (Event, error) {
	id, err := ulid.ParseStrict(r.ID)
	if err != nil {
		return Event{}, err
	}
	p, err := Decode(r.Type, r.Schema, r.Data)
	if err != nil {
		return Event{}, err
	}
	return Event{Position: r.Position, ID: id, Version: r.Version, Time: r.Time, Payload: p, Meta: Meta{
		Workspace: r.Workspace, Actor: r.Actor, Session: r.Session,
		Command: r.Command, Cause: r.Cause, Correlation: r.Correlation,
	}}, nil
}
