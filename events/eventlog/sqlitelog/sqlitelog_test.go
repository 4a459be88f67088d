package sqlitelog_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"roundtable/events/eventlog"
	"roundtable/events/eventlog/logtest"
	"roundtable/events/eventlog/sqlitelog"
)

func TestSuite(t *testing.T) {
	logtest.Suite(t, func(ctx context.Context, dir string, now func() time.Time) (eventlog.Store, error) {
		return sqlitelog.Open(ctx, filepath.Join(dir, "log.db"), sqlitelog.Options{Now: now})
	})
}
