package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"roundtable/internal/fault"
	"roundtable/internal/repo"
)

// ownData refuses a data folder that a repository brings, or in which a link or
// something else stands for what the program keeps there. It comes before
// anything in the folder is read or written.
func ownData(ctx context.Context, data string) error {
	if err := repo.CheckData(ctx, data, repo.Options{UserEnv: os.Environ()}); err != nil {
		return err
	}
	for _, name := range []string{"blobs", "keys", "runs", "tmp", "tx"} {
		if err := plain(data, name, fs.ModeDir); err != nil {
			return err
		}
	}
	for _, name := range []string{"config.yaml", "lock", "service"} {
		if err := plain(data, name, 0); err != nil {
			return err
		}
	}
	for _, db := range []string{"log.db", "views.db"} {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			if err := plain(data, db+end, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain refuses what lies in the data folder by a name and is of another kind.
func plain(data, name string, kind fs.FileMode) error {
	info, err := os.Lstat(filepath.Join(data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != kind {
		what := map[fs.FileMode]string{0: "plain file", fs.ModeDir: "folder"}[kind]
		return fault.Errorf(fault.Refused, "state.not_plain", "%s in %s is no %s, and this program never makes it anything else: move it away", name, data, what).With("path", name)
	}
	return nil
}
