package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// QuickCheck has SQLite look over the file at path, beside whoever may write
// it, and returns what is wrong with its structure: nothing if all is well.
func QuickCheck(ctx context.Context, path string) (wrong string, err error) {
	db, err := OpenRead(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `PRAGMA quick_check(10)`)
	if err != nil {
		return "", fmt.Errorf("check %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return "", err
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	return strings.Join(found, "; "), rows.Err()
}
