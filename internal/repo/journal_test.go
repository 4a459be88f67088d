package repo

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

func drawJournal(t *rapid.T) journal {
	bytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) name { return name(b) })
	state := rapid.Custom(func(t *rapid.T) patch.State {
		return patch.State{Kind: patch.File, Mode: "100644", SHA256: rapid.String().Draw(t, "sha"), Size: rapid.Int64().Draw(t, "size")}
	})
	op := rapid.Custom(func(t *rapid.T) operation {
		return operation{Kind: replace, Path: bytes.Draw(t, "path"), Before: state.Draw(t, "before"), After: state.Draw(t, "after")}
	})
	dir := rapid.Custom(func(t *rapid.T) folder {
		return folder{Path: bytes.Draw(t, "folder"), Perm: 0o755, Xattrs: map[string][]byte{"user.x": {0xff, 0}}}
	})
	return journal{Version: journalVersion, Tx: "TX-1", Attempt: 3, Ops: rapid.SliceOfN(op, 1, 5).Draw(t, "ops"),
		Made: rapid.SliceOfN(bytes, 1, 3).Draw(t, "made"), Emptied: rapid.SliceOfN(dir, 1, 3).Draw(t, "emptied")}
}

func TestJournalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJournal(t)
		b, err := j.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeJournal(b)
		if err != nil || !reflect.DeepEqual(back, j) {
			t.Fatalf("%+v came back as %+v: %v", j, back, err)
		}
		i := rapid.IntRange(0, len(b)-1).Draw(t, "byte")
		b[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		if _, err := decodeJournal(b); err == nil {
			t.Fatalf("byte %d was changed and not noticed", i)
		}
	})
}

func FuzzJournal(f *testing.F) {
	b, err := journal{Version: journalVersion, Ops: []operation{{Path: "a\xff%"}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := decodeJournal(b)
		if err != nil {
			return
		}
		if again, err := j.encode(); err != nil || len(again) == 0 {
			t.Fatal(again, err)
		}
	})
}
