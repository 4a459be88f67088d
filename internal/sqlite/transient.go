package sqlite

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// Transient reports whether what failed may succeed when it is tried again,
// unchanged: the database is busy, the disk is full or fails, or memory is
// short. A statement that SQLite refuses for what it says is refused for ever.
func Transient(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrNomem,
		sqlite3.ErrCantOpen, sqlite3.ErrReadonly, sqlite3.ErrInterrupt, sqlite3.ErrProtocol:
		return true
	}
	return false
}
