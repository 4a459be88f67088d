package projections

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/sqlite"
)

// TestRebuild: whatever happened, tables made as it went (in pages of any
// size, with repeats, by several lives of the program) equal tables rebuilt,
// and tables made in one pass at the head, byte for byte.
func TestRebuild(t *testing.T) {
	file, _ := newViews(t)
	manyTimes(t, func(rt *rapid.T) {
		ctx := t.Context()
		log, w := &memLog{}, newWorld(rt)
		v := empty(rt, ctx, file, log)
		history := w.history(rapid.IntRange(4, 60).Draw(rt, "events"))
		for i := 0; i < len(history); {
			some := rapid.IntRange(1, len(history)-i).Draw(rt, "more")
			log.add(w.later(), history[i:i+some]...)
			i += some
			for _, p := range v.ps {
				advance(ctx, rt, v, p, rapid.IntRange(1, 20).Draw(rt, "page"), rapid.IntRange(0, 5).Draw(rt, "pages"))
			}
			if rapid.Bool().Draw(rt, "restart") {
				v = New(log, v.db, nil)
			}
		}
		v.catchUp(ctx, rt, 7)
		asItWent := tables(ctx, rt, v.db.Read)

		past, err := At(ctx, log, int64(len(history)))
		if err != nil {
			rt.Fatal(err)
		}
		defer past.Close()
		if d := cmp.Diff(tables(ctx, rt, past.db), asItWent); d != "" {
			rt.Fatalf("at the head, and as it went:\n%s", d)
		}
		at, err := v.Rebuild(ctx)
		if err != nil || at != int64(len(history)) {
			rt.Fatal(at, err)
		}
		if d := cmp.Diff(asItWent, tables(ctx, rt, v.db.Read)); d != "" {
			rt.Fatalf("as it went, and rebuilt:\n%s", d)
		}
		for _, p := range v.ps {
			if at, err := checkpoint(ctx, v.db.Read, p.Name); err != nil || at != int64(len(history)) {
				rt.Fatal(p.Name, at, err)
			}
		}
	})
}

// advance takes some pages, the first of which may overlap what was taken.
func advance(ctx context.Context, rt *rapid.T, v *Views, p Projector, size, pages int) {
	at, err := checkpoint(ctx, v.db.Read, p.Name)
	if err != nil {
		rt.Fatal(err)
	}
	at = max(0, at-int64(rapid.IntRange(0, 10).Draw(rt, "again")))
	for range pages {
		rs, err := v.log.Since(ctx, at, size)
		if err != nil {
			rt.Fatal(err)
		}
		if err := v.take(ctx, p, decodeAll(rt, rs)); err != nil {
			rt.Fatal(err)
		}
		at += int64(len(rs))
	}
}

// tables returns every row of every table as text.
func tables(ctx context.Context, t fatal, db *sql.DB) (out []string) {
	t.Helper()
	for _, p := range All() {
		for _, name := range p.Tables {
			if err := dump(ctx, db, name, func(row []byte) error {
				out = append(out, name+" "+string(row))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestRebuildOneOnline rebuilds one view whose rows were damaged, while it
// is ahead of where the rebuild ends: nothing goes back.
func TestRebuildOneOnline(t *testing.T) {
	ctx := t.Context()
	v, log := newViews(t)
	log.add(epoch, example(t, 200)...)
	v.catchUp(ctx, t, 50)
	want := tables(ctx, t, v.db.Read)
	if _, err := v.db.Write.ExecContext(ctx, `DELETE FROM votes`); err != nil {
		t.Fatal(err)
	}
	ps, err := v.named([]string{"proposals"})
	if err != nil {
		t.Fatal(err)
	}
	shadow, err := v.shadowPath(ctx)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.OpenScratch(ctx, shadow)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(ctx, log, db, ps, 120); err != nil { // as if the log had grown since
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	head := int64(len(log.records))
	if at, err := v.swap(ctx, shadow, ps, 120); err != nil || at != head {
		t.Fatal(at, err)
	}
	if d := cmp.Diff(want, tables(ctx, t, v.db.Read)); d != "" {
		t.Fatal(d)
	}
	if _, err := v.Rebuild(ctx, "no such"); err == nil {
		t.Fatal("rebuilt a view there is not")
	}
	if _, err := v.Rebuild(ctx, "proposals", "tasks"); err != nil { // over the file that was left
		t.Fatal(err)
	}
	if d := cmp.Diff(want, tables(ctx, t, v.db.Read)); d != "" {
		t.Fatal(d)
	}
}

// TestUnknownType: what a newer program wrote is not passed over.
func TestUnknownType(t *testing.T) {
	ctx := t.Context()
	log := &memLog{}
	log.add(epoch, example(t, 10)...)
	log.records[4].Type = "workspace.renamed"
	if _, err := At(ctx, log, 10); err == nil || !strings.Contains(err.Error(), "workspace.renamed") {
		t.Fatal(err)
	}
}

// TestNotDelivered: a page that leaves events out is refused.
func TestNotDelivered(t *testing.T) {
	v, log := newViews(t)
	log.add(epoch, example(t, 20)...)
	if err := v.take(t.Context(), tasks, decodeAll(t, log.records[3:])); err == nil {
		t.Fatal("took a page with a gap before it")
	}
}

// TestMissing: an event about something the log has not told of is an error.
func TestMissing(t *testing.T) {
	v, log := newViews(t)
	log.add(epoch, events.TokenRevoked{Token: "TK-1"})
	if err := v.take(t.Context(), principals, decodeAll(t, log.records)); err == nil {
		t.Fatal("revoked a token that was never issued")
	}
}
