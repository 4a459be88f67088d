package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"roundtable/migrations"
)

// OpenScratch opens an empty database of views at path that no crash needs to
// spare: no commit waits for the disk. There is one connection. An empty path
// stands for a file without a name that is gone when the database is closed.
func OpenScratch(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_journal_mode=MEMORY&_synchronous=OFF&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // of a file without a name, each connection has its own
	if err := migrations.Views().Apply(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open a scratch database: %w", err), db.Close())
	}
	return db, nil
}
