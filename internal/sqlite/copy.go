package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Copy makes a copy of the database at from, which may be in use, as it is at
// one moment, in the new file to. When it returns nil the copy is durable. A
// file that was copied by other means is no copy: what is newest lies in the
// write-ahead log beside it.
func Copy(ctx context.Context, from, to string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy %s to %s: %w", from, to, err)
		}
	}()
	if _, err := os.Stat(from); err != nil {
		return err
	}
	if err := create(to); err != nil {
		return err
	}
	if info, err := os.Stat(to); err != nil {
		return err
	} else if info.Size() > 0 {
		return os.ErrExist
	}
	db, err := sql.Open("sqlite3", dsn(from, Full))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return errors.Join(syncFile(to), syncFile(filepath.Dir(to)))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
