package eventlog_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// history returns n sound records of three streams.
func history(n int) []events.Record {
	rs := make([]events.Record, n)
	versions := map[events.Stream]int64{}
	for i := range rs {
		s := events.TaskStream(fmt.Sprint(i % 3))
		versions[s]++
		rs[i] = events.Record{
			Position: int64(i + 1), ID: fmt.Sprintf("%026d", i), Workspace: "W", Stream: s, Version: versions[s], Type: "task.created", Schema: 1,
			Time: time.Unix(1e9, int64(i)).UTC(), Actor: "A", Command: fmt.Sprint("k", i), Data: fmt.Appendf(nil, `{"task_id":"%d"}`, i%3),
		}
	}
	return rehash(rs)
}

// rehash gives every row the hash that follows from the one before it.
func rehash(rs []events.Record) []events.Record {
	var prev []byte
	for i := range rs {
		rs[i].PrevHash = hex.EncodeToString(prev)
		h := eventlog.Hash(prev, &rs[i])
		prev = h[:]
		rs[i].Hash = hex.EncodeToString(prev)
	}
	return rs
}

// asDatabase returns rs as a store with one row per position gives them: in
// order, and each after the one before it.
func asDatabase(rs []events.Record) []events.Record {
	rs = slices.Clone(rs)
	slices.SortStableFunc(rs, func(a, b events.Record) int { return int(a.Position - b.Position) })
	for i := range rs {
		if rs[i].PrevHash = ""; i > 0 {
			rs[i].PrevHash = rs[i-1].Hash
		}
	}
	return rs
}

func all(rs []events.Record) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range rs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func verify(t testing.TB, rs []events.Record, known ...eventlog.Point) eventlog.Report {
	rep, err := eventlog.Verify(t.Context(), all(rs), eventlog.Point{}, known...)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestHashVector: the hash is part of the format. A change of it, or of the
// order of its fields, makes every log ever written a forgery.
func TestHashVector(t *testing.T) {
	r := events.Record{
		Position: 7, ID: "01JDXKZ0000000000000000000", Workspace: "WS-1", Stream: "task/T-1", Version: 3, Type: "task.created", Schema: 1,
		Time: time.Unix(1_700_000_000, 123456789), Actor: "PR-1", Session: "S-1", Command: "k", Cause: "c", Correlation: "r", Data: []byte(`{}`),
	}
	if got := fmt.Sprintf("%x", eventlog.Hash(bytes.Repeat([]byte{0xab}, 32), &r)); got != "c4ceb2127a9399b176d4c4d2d675747ee7f317a1004b4a073e3a9e66ed4d00f4" {
		t.Errorf("hash %s", got)
	}
	if got := fmt.Sprintf("%x", eventlog.Hash(nil, &events.Record{})); got != "462316298566042492b748a13fd264b2b9ba7b69eeb8ac119799fd35342a2f49" {
		t.Errorf("hash of nothing %s", got)
	}
}

// TestHashCoversAll: a change of any field, also of where one ends and the
// next begins, changes the hash.
func TestHashCoversAll(t *testing.T) {
	base := events.Record{Position: 1, ID: "i", Workspace: "ab", Stream: "c/d", Version: 1, Type: "t", Schema: 1, Time: time.Unix(0, 1),
		Actor: "a", Session: "s", Command: "k", Cause: "u", Correlation: "r", Data: []byte("1")}
	seen := map[[32]byte]string{eventlog.Hash(nil, &base): "base"}
	change := func(name string, f func(r *events.Record)) {
		r := base
		f(&r)
		h := eventlog.Hash(nil, &r)
		if other, ok := seen[h]; ok {
			t.Errorf("%s hashes like %s", name, other)
		}
		seen[h] = name
	}
	change("position", func(r *events.Record) { r.Position++ })
	change("id", func(r *events.Record) { r.ID += "x" })
	change("workspace", func(r *events.Record) { r.Workspace += "x" })
	change("stream", func(r *events.Record) { r.Stream += "x" })
	change("version", func(r *events.Record) { r.Version++ })
	change("type", func(r *events.Record) { r.Type += "x" })
	change("schema", func(r *events.Record) { r.Schema++ })
	change("time", func(r *events.Record) { r.Time = r.Time.Add(1) })
	change("actor", func(r *events.Record) { r.Actor += "x" })
	change("session", func(r *events.Record) { r.Session += "x" })
	change("command", func(r *events.Record) { r.Command += "x" })
	change("cause", func(r *events.Record) { r.Cause += "x" })
	change("correlation", func(r *events.Record) { r.Correlation += "x" })
	change("data", func(r *events.Record) { r.Data = []byte("2") })
	change("border", func(r *events.Record) { r.Workspace, r.Stream = "abc", "/d" })
	change("fields exchanged", func(r *events.Record) { r.Actor, r.Session = "s", "a" })
	if h := eventlog.Hash(make([]byte, 32), &base); seen[h] != "" {
		t.Error("the previous hash is not covered")
	}
}

// TestVerifySound: a sound log is found so, and its root is that of tlog.
func TestVerifySound(t *testing.T) {
	for n := range 70 {
		rs := history(n)
		rep := verify(t, rs)
		if !rep.OK || rep.Events != int64(n) || rep.Head.Position != int64(n) || rep.FirstBad != 0 {
			t.Fatalf("%d events: %+v", n, rep)
		}
		if want := root(t, rs); rep.Root != want {
			t.Errorf("%d events: root %s, tlog says %s", n, rep.Root, want)
		}
	}
}

func root(t *testing.T, rs []events.Record) string {
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(is []int64) ([]tlog.Hash, error) {
		hs := make([]tlog.Hash, len(is))
		for i, x := range is {
			hs[i] = stored[x]
		}
		return hs, nil
	})
	for i, r := range rs {
		h, err := hex.DecodeString(r.Hash)
		if err != nil {
			t.Fatal(err)
		}
		hs, err := tlog.StoredHashes(int64(i), h, read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hs...)
	}
	h, err := tlog.TreeHash(int64(len(rs)), read)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h[:])
}

// TestVerifyForged: each kind of forgery, in a database and in an export, is
// found, named, and placed.
func TestVerifyForged(t *testing.T) {
	const n = 12
	renumber := func(rs []events.Record) []events.Record {
		for i := range rs {
			rs[i].Position = int64(i + 1)
		}
		return rs
	}
	foreign := func(position int64) events.Record {
		r := history(1)[0]
		r.Position, r.Actor = position, "forger"
		return r
	}
	for k := 2; k <= n-2; k++ { // the forgery is at position k
		i := k - 1
		for name, c := range map[string]struct {
			forge  func(rs []events.Record) []events.Record
			db, ex eventlog.Reason // "": cannot be in this form
		}{
			"data":      {func(rs []events.Record) []events.Record { rs[i].Data = []byte(`{"task_id":"x"}`); return rs }, eventlog.Edited, eventlog.Edited},
			"actor":     {func(rs []events.Record) []events.Record { rs[i].Actor = "x"; return rs }, eventlog.Edited, eventlog.Edited},
			"hash":      {func(rs []events.Record) []events.Record { rs[i].Hash = strings.Repeat("0", 64); return rs }, eventlog.Edited, eventlog.Edited},
			"prev hash": {func(rs []events.Record) []events.Record { rs[i].PrevHash = rs[i].Hash; return rs }, "", eventlog.Edited},
			"hashed anew": {func(rs []events.Record) []events.Record {
				rs[i].Actor = "x"
				prev, _ := hex.DecodeString(rs[i].PrevHash)
				rs[i].Hash = fmt.Sprintf("%x", eventlog.Hash(prev, &rs[i]))
				return rs
			}, "", eventlog.Edited},
			"removed":              {func(rs []events.Record) []events.Record { return slices.Delete(rs, i, i+1) }, eventlog.Missing, eventlog.Missing},
			"two removed":          {func(rs []events.Record) []events.Record { return slices.Delete(rs, i, i+2) }, eventlog.Missing, eventlog.Missing},
			"removed, renumbered":  {func(rs []events.Record) []events.Record { return renumber(slices.Delete(rs, i, i+1)) }, eventlog.Missing, eventlog.Missing},
			"inserted":             {func(rs []events.Record) []events.Record { return slices.Insert(rs, i, foreign(int64(k))) }, eventlog.Inserted, eventlog.Inserted},
			"inserted, renumbered": {func(rs []events.Record) []events.Record { return renumber(slices.Insert(rs, i, foreign(0))) }, eventlog.Inserted, eventlog.Inserted},
			"repeated":             {func(rs []events.Record) []events.Record { return slices.Insert(rs, i, rs[i-1]) }, "", eventlog.Inserted},
			"swapped":              {func(rs []events.Record) []events.Record { rs[i], rs[i+1] = rs[i+1], rs[i]; return rs }, "", eventlog.Reordered},
			"swapped, renumbered":  {func(rs []events.Record) []events.Record { rs[i], rs[i+1] = rs[i+1], rs[i]; return renumber(rs) }, eventlog.Reordered, eventlog.Reordered},
			"moved to the end": {func(rs []events.Record) []events.Record {
				return append(slices.Delete(slices.Clone(rs), i, i+1), rs[i])
			},
				"", eventlog.Reordered},
			"moved from the end": {func(rs []events.Record) []events.Record {
				last := rs[n-1]
				return slices.Insert(rs[:n-1], i, last)
			}, "", eventlog.Reordered},
		} {
			forged := c.forge(history(n))
			for form, x := range map[string]struct {
				rs     []events.Record
				reason eventlog.Reason
			}{"database": {asDatabase(forged), c.db}, "export": {forged, c.ex}} {
				if x.reason == "" {
					continue
				}
				rep := verify(t, x.rs)
				if rep.OK || rep.FirstBad != int64(k) || rep.Reason != x.reason || rep.Events != int64(k-1) || rep.Head.Position != int64(k-1) {
					t.Errorf("%s at %d, %s: %+v, want %s", name, k, form, rep, x.reason)
				}
				if want := verify(t, history(k-1)).Root; rep.Root != want {
					t.Errorf("%s at %d, %s: root %s is not that of the good part", name, k, form, rep.Root)
				}
			}
		}
	}
}

// TestVerifyKnown: against points kept elsewhere a cut tail, and a history
// that was written anew, are seen; without them neither can be.
func TestVerifyKnown(t *testing.T) {
	sound := history(10)
	point := func(p int) eventlog.Point { return eventlog.Point{Position: int64(p), Hash: sound[p-1].Hash} }
	cut := sound[:6]
	anew := history(10)
	anew[3].Actor = "forger"
	anew = rehash(anew)
	for _, c := range []struct {
		name   string
		rs     []events.Record
		known  []eventlog.Point
		bad    int64
		reason eventlog.Reason
	}{
		{"sound", sound, []eventlog.Point{point(10), point(2), point(2)}, 0, ""},
		{"cut, unknown", cut, nil, 0, ""},
		{"cut, known before", cut, []eventlog.Point{point(6)}, 0, ""},
		{"cut", cut, []eventlog.Point{point(8), point(3)}, 7, eventlog.Truncated},
		{"emptied", nil, []eventlog.Point{point(1)}, 1, eventlog.Truncated},
		{"anew, unknown", anew, nil, 0, ""},
		{"anew", anew, []eventlog.Point{point(3), point(7)}, 7, eventlog.Replaced},
		{"two points of one position", sound, []eventlog.Point{point(5), {Position: 5, Hash: strings.Repeat("0", 64)}}, 5, eventlog.Replaced},
	} {
		rep := verify(t, c.rs, c.known...)
		if rep.OK != (c.bad == 0) || rep.FirstBad != c.bad || rep.Reason != c.reason {
			t.Errorf("%s: %+v", c.name, rep)
		}
	}
	for _, bad := range []eventlog.Point{{Position: 1}, {Position: 1, Hash: "zz"}, {Position: 0, Hash: "00"}} {
		if _, err := eventlog.Verify(t.Context(), all(sound), bad); err == nil {
			t.Errorf("start %+v was taken", bad)
		}
	}
}

// TestVerifyRandom: whatever single field of whatever row is changed, that row
// or the one after it is named.
func TestVerifyRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := history(rapid.IntRange(1, 40).Draw(t, "n"))
		i := rapid.IntRange(0, len(rs)-1).Draw(t, "row")
		r := &rs[i]
		text := rapid.SampledFrom([]*string{&r.ID, &r.Workspace, &r.Type, &r.Actor, &r.Session, &r.Command, &r.Cause, &r.Correlation, &r.Hash}).Draw(t, "field")
		*text += rapid.StringN(1, 5, -1).Draw(t, "more")
		rep, err := eventlog.Verify(context.Background(), all(rs), eventlog.Point{})
		if err != nil || rep.OK || rep.FirstBad != r.Position {
			t.Fatalf("row %d was changed: %+v, %v", i+1, rep, err)
		}
	})
}
