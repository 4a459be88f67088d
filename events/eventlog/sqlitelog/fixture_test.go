package sqlitelog

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/sqlite"
	"roundtable/migrations"
)

var update = flag.Bool("update", false, "write the database of the newest schema, if it is not kept yet")

// TestKept: a database of every schema there ever was opens, is whole up to
// the head it was kept with, decodes, remembers outcomes, jobs and
// checkpoints, and can be appended to.
func TestKept(t *testing.T) {
	newest, err := migrations.Log().Newest()
	if err != nil {
		t.Fatal(err)
	}
	for schema := 1; schema <= newest; schema++ {
		file := filepath.Join("testdata", fmt.Sprintf("log.%d.db", schema))
		kept, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && *update && schema == newest {
			keep(t, file)
			kept, err = os.ReadFile(file)
		}
		if err != nil {
			t.Errorf("%v; go test ./events/eventlog/sqlitelog -update writes the newest", err)
			continue
		}
		head, err := os.ReadFile(strings.TrimSuffix(file, ".db") + ".head")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "log.db")
		if err := os.WriteFile(path, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) { opens(t, path, strings.TrimSpace(string(head))) })
	}
}

func opens(t *testing.T, path, head string) {
	s, err := Open(t.Context(), path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var known eventlog.Point
	if _, err := fmt.Sscan(head, &known.Position, &known.Hash); err != nil {
		t.Fatal(err)
	}
	rep, err := eventlog.Verify(t.Context(), eventlog.Records(t.Context(), s, 0, 0), eventlog.Point{}, known)
	if err != nil || !rep.OK || rep.Head != known {
		t.Errorf("%+v, %v; it was kept with %v", rep, err, known)
	}
	n := int64(0)
	err = eventlog.Replay(t.Context(), s, 0, 0, 1, func(es []events.Event) error { n += int64(len(es)); return nil })
	if err != nil || n != known.Position {
		t.Errorf("%d events decoded, %v", n, err)
	}
	if o, ok, err := s.Outcome(t.Context(), "PR-1", "k0"); !ok || err != nil || string(o.Digest) != "digest" || string(o.Answer) != "{}" || o.Position != 1 {
		t.Errorf("outcome: %+v %v %v", o, ok, err)
	}
	if at, err := s.Checkpoint(t.Context(), "manager"); at != 1 || err != nil {
		t.Errorf("checkpoint: %d %v", at, err)
	}
	if j, ok, err := s.Lease(t.Context(), "kind", time.Unix(10, 0), time.Unix(20, 0)); !ok || err != nil || j.Fence != 2 || j.Meta.Actor != "PR-1" {
		t.Errorf("job: %+v %v %v", j, ok, err)
	}
	if version, state, ok, err := s.Snapshot(t.Context(), "stream", "code"); version != 3 || string(state) != "state" || !ok || err != nil {
		t.Errorf("snapshot: %d %s %v %v", version, state, ok, err)
	}
	if ps, err := s.Parked(t.Context()); len(ps) != 1 || err != nil {
		t.Errorf("parked: %+v %v", ps, err)
	}
	if _, err := s.Append(t.Context(), command("new", "new", 0), nil); err != nil {
		t.Error(err)
	}
	whole(t, s, known.Position+2)
}

// keep makes a log with an event of every type and a row in every table.
func keep(t *testing.T, file string) {
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := Open(t.Context(), path, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	versions := map[events.Stream]int64{}
	for i, p := range events.Zeros() {
		_, err := s.Append(t.Context(), eventlog.Batch{
			Meta:   events.Meta{Workspace: "WS-1", Actor: "PR-1", Session: "S-1", Command: fmt.Sprint("k", i), Cause: "c", Correlation: "r"},
			Digest: []byte("digest"), Answer: []byte("{}"), Expect: map[events.Stream]int64{p.Stream(): versions[p.Stream()]}, Happened: []events.Payload{p},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		versions[p.Stream()]++
	}
	job := eventlog.Job{ID: "job", Kind: "kind", Event: "e", Stream: "s", Data: []byte("{}"), Meta: events.Meta{Actor: "PR-1"}}
	err = errors.Join(s.Enqueue(t.Context(), "manager", 1, []eventlog.Job{job}),
		s.KeepSnapshot(t.Context(), "stream", "code", 3, []byte("state")),
		s.Park(t.Context(), eventlog.Parked{Consumer: "manager", Position: 1, Error: "why", Tries: 1, Time: time.Unix(5, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	leased, ok, err := s.Lease(t.Context(), "kind", time.Unix(1, 0), time.Unix(2, 0))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := s.Release(t.Context(), leased, time.Unix(3, 0), "why"); err != nil {
		t.Fatal(err)
	}
	position, hash, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), sqlite.Copy(t.Context(), path, file)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(file, ".db")+".head", fmt.Appendf(nil, "%d %s\n", position, hash), 0o644); err != nil {
		t.Fatal(err)
	}
}
