package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"roundtable/commands"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

// TestRoundTrip: a change that was applied and taken back leaves every byte,
// mode, link and folder as it was.
func TestRoundTrip(t *testing.T) {
	b := setUp(t, files)
	b.join("bob", "human", "", "operator")
	stop := b.run()
	defer stop()
	edited := strings.Replace(ten, "5\n", "five\n", 1)
	for _, x := range []struct {
		name       string
		from, into tree
	}{
		{"text", tree{"p": "-" + ten}, tree{"p": "-" + edited}},
		{"no newline at the end", tree{"p": "-" + ten + "end"}, tree{"p": "-" + ten + "end\n"}},
		{"CR LF", tree{"p": "-" + strings.ReplaceAll(ten, "\n", "\r\n")}, tree{"p": "-" + strings.ReplaceAll(edited, "\n", "\r\n")}},
		{"CR LF by attributes", tree{".gitattributes": "-*.txt text eol=crlf\n", "p.txt": "-" + strings.ReplaceAll(ten, "\n", "\r\n")},
			tree{".gitattributes": "-*.txt text eol=crlf\n", "p.txt": "-" + strings.ReplaceAll(edited, "\n", "\r\n")}},
		{"mixed line ends", tree{"p": "-a\r\nb\nc\r\n"}, tree{"p": "-a\nb\r\nc\r\n"}},
		{"bytes that are no text", tree{"p": "-caf\xe9\n"}, tree{"p": "-caf\xe9s\n"}},
		{"binary", tree{"p": "-\x00\x01\xff" + ten}, tree{"p": "-\x00\x02\xfe" + ten}},
		{"binary to text", tree{"p": "-\x00\x01\xff" + ten}, tree{"p": "-" + ten}},
		{"mode", tree{"p": "-" + ten}, tree{"p": "x" + ten}},
		{"mode and text", tree{"p": "x" + ten}, tree{"p": "-" + edited}},
		{"new", tree{"q": "-q\n"}, tree{"q": "-q\n", "a/b/c": "-" + ten}},
		{"new and empty", tree{"q": "-q\n"}, tree{"q": "-q\n", "e": "-"}},
		{"deleted, with its folder", tree{"q": "-q\n", "a/b/c": "x" + ten}, tree{"q": "-q\n"}},
		{"rename", tree{"p": "-" + ten}, tree{"d/q": "-" + ten}},
		{"rename with an edit and a mode", tree{"p": "-" + ten}, tree{"q": "x" + edited}},
		{"names exchanged", tree{"p": "-" + ten, "q": "-q\n"}, tree{"q": "-" + ten, "p": "-q\n"}},
		{"link", tree{"p": "-" + ten, "l": "lp"}, tree{"p": "-" + ten, "q": "-q\n", "l": "lq"}},
		{"file to link", tree{"p": "-" + ten, "q": "-q\n"}, tree{"p": "lq", "q": "-q\n"}},
		{"link to file", tree{"p": "lq", "q": "-q\n"}, tree{"p": "-" + ten, "q": "-q\n"}},
		{"file to folder", tree{"p": "-" + ten}, tree{"p/q": "-" + edited, "p/r": "-r\n"}},
		{"folder to file", tree{"p/q": "-" + ten, "p/r": "-r\n"}, tree{"p": "-" + ten}},
	} {
		patch := b.change(x.from, x.into)
		was := b.lies()
		tx := b.applied(patch)
		if b.lies() == was {
			t.Fatalf("%s: nothing was changed", x.name)
		}
		_, r := b.takenBack(tx)
		if got := b.lies(); got != was {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, was)
		}
		if len(r.Merged) > 0 {
			t.Errorf("%s: %v were merged, and nothing was done since", x.name, r.Merged)
		}
	}
}

// lines is ten with some lines replaced.
func lines(by ...string) string {
	l := strings.SplitAfter(ten, "\n")
	for _, s := range by {
		n, text, _ := strings.Cut(s, "=")
		i, _ := strconv.Atoi(n)
		l[i-1] = text + "\n"
	}
	return strings.Join(l, "")
}

// TestLaterWork: what others did since stays, in order and out of order, and
// where it is in the way nothing is done and the refusal says who did it.
func TestLaterWork(t *testing.T) {
	b := setUp(t, files)
	b.join("bob", "human", "", "operator")
	stop, quiet := b.run(), b.told()
	defer stop()
	defer quiet()
	at := func(by ...string) tree { return tree{"p": "-" + lines(by...)} }
	b.lay(at())
	one := b.applied(b.change(at(), at("2=two")))
	two := b.applied(b.change(at("2=two"), at("2=two", "5=five")))
	b.write("p", lines("2=two", "5=five", "9=by hand"))
	if can, why := b.canBeTakenBack(one); !can || why != "what was done since can be kept" {
		t.Error(can, why)
	}

	back, r := b.takenBack(one)
	b.file("p", lines("5=five", "9=by hand"))
	if !slices.Equal(r.Merged, []string{"p"}) {
		t.Errorf("merged %v", r.Merged)
	}
	b.refusedBack(one, "already_compensated")
	if _, r = b.takenBack(back); !slices.Equal(r.Merged, []string{"p"}) && len(r.Merged) > 0 {
		t.Errorf("merged %v", r.Merged)
	}
	b.file("p", lines("2=two", "5=five", "9=by hand"))
	_, r = b.takenBack(two)
	b.file("p", lines("2=two", "9=by hand"))

	three := b.applied(b.change(at("2=two"), at("2=two", "5=fünf")))
	four := b.applied(b.change(at("2=two", "5=fünf"), at("2=two", "5=cinq")))
	if can, why := b.canBeTakenBack(three); can || why != "later work stands in the way at p" {
		t.Error(can, why)
	}
	f := b.refusedBack(three, "compensation_conflict")
	later, _ := f.Context["later_transactions"].([]wire.LaterTransaction)
	conflicts, _ := f.Context["conflicts"].([]wire.MergeConflict)
	if len(later) != 1 || later[0].Transaction != four || !slices.Equal(later[0].Paths, []string{"p"}) || len(f.Context["changed_outside"].([]string)) > 0 {
		t.Errorf("later %+v, outside %v", later, f.Context["changed_outside"])
	}
	if len(conflicts) != 1 || conflicts[0].Reason != "lines" || len(conflicts[0].Hunks) != 1 || conflicts[0].Hunks[0].Ours.Lines[0].Text != "cinq" ||
		conflicts[0].Hunks[0].Base.Lines[0].Text != "fünf" || conflicts[0].Hunks[0].Theirs.Lines[0].Text != "5" || conflicts[0].Hunks[0].Ours.Start != 5 {
		t.Errorf("%+v", conflicts)
	}
	b.write("p", lines("2=two", "5=by hand"))
	f = b.refusedBack(three, "compensation_conflict")
	if outside := f.Context["changed_outside"].([]string); !slices.Equal(outside, []string{"p"}) || !strings.Contains(f.Detail, "no transaction") {
		t.Errorf("outside %v: %s", outside, f.Detail)
	}
	b.file("p", lines("2=two", "5=by hand"))
	b.write("p", lines("2=two"))
	b.refusedBack(three, "nothing_to_compensate")
}

// TestLaterWorkOnNames: renames, links, binary files and folders with later
// work in them.
func TestLaterWorkOnNames(t *testing.T) {
	b := setUp(t, files)
	b.join("bob", "human", "", "operator")
	stop := b.run()
	defer stop()
	reason := func(tx string) string {
		t.Helper()
		var out []string
		for _, c := range b.refusedBack(tx, "compensation_conflict").Context["conflicts"].([]wire.MergeConflict) {
			out = append(out, c.Path+" "+c.Reason)
		}
		return strings.Join(out, ", ")
	}
	moved := b.applied(b.change(tree{"p": "-" + ten}, tree{"q": "-" + lines("2=two")}))
	b.write("q", lines("2=two", "8=eight"))
	b.write("p", "in the way\n")
	if got := reason(moved); got != "p exists" {
		t.Error(got)
	}
	if err := os.Remove(filepath.Join(b.root, "p")); err != nil {
		t.Fatal(err)
	}
	_, r := b.takenBack(moved)
	b.file("p", lines("8=eight"))
	if got := b.lies(); strings.Contains(got, "q") || !slices.Equal(r.Merged, []string{"p"}) {
		t.Errorf("%s\nmerged %v", got, r.Merged)
	}

	tx := b.applied(b.change(tree{"p": "-\x00a", "l": "lp"}, tree{"p": "-\x00b", "l": "lx"}))
	b.write("p", "\x00c")
	if got := reason(tx); got != "p binary" {
		t.Error(got)
	}
	if err := errors.Join(os.Remove(filepath.Join(b.root, "l")), os.Symlink("y", filepath.Join(b.root, "l")), os.Remove(filepath.Join(b.root, "p"))); err != nil {
		t.Fatal(err)
	}
	if got := reason(tx); got != "l symlink, p deleted" {
		t.Error(got)
	}

	folder := b.applied(b.change(tree{"p": "-" + ten}, tree{"p/q": "-" + ten}))
	b.write("p/later", "x\n")
	if got := reason(folder); got != "p in_the_way" {
		t.Error(got)
	}
	b.file("p/later", "x\n")
	made := b.applied(b.change(tree{"a": "-a\n"}, tree{"a": "-a\n", "d/e/f": "-f\n"}))
	b.write("d/later", "x\n")
	b.takenBack(made)
	if got := b.lies(); got != "a false \"a\\n\"\nd/\nd/later false \"x\\n\"" {
		t.Error("a folder with later work in it:", got)
	}
}

// TestTakingBackRefused: nobody's claim is passed over, and what is gone from
// the store is said to be.
func TestTakingBackRefused(t *testing.T) {
	b := setUp(t, files)
	b.join("bob", "human", "", "operator")
	stop := b.run()
	defer stop()
	tx := b.applied(first)
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
	if f := b.refusedBack(tx, "claim_conflict"); f.Context["holder"] != b.who["coder"].ID {
		t.Errorf("%+v", f.Context)
	}
	was := patch.Digest([]byte(files["a.txt"]))
	err := filepath.WalkDir(filepath.Join(b.dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(strings.ReplaceAll(path, "/", ""), was) {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.refusedBack(tx, "state.artifact_missing")
	b.file("a.txt", "one\n2\nthree\n")
}

// TestTakenBackAndAgain: of a transaction whose compensation was taken back
// the change is there, and it can be taken back anew, any number of times.
func TestTakenBackAndAgain(t *testing.T) {
	b := setUp(t, files)
	b.join("bob", "human", "", "operator")
	stop := b.run()
	defer stop()
	by := func(tx, want string) {
		t.Helper()
		if got, err := b.Transaction(t.Context(), tx); err != nil || got.CompensatedBy != want {
			t.Errorf("%s: %q, %v, want %q", tx, got.CompensatedBy, err, want)
		}
	}
	was := b.lies()
	tx := b.applied(first)
	is := b.lies()
	chain := []string{tx}
	for i := range 3 {
		back, _ := b.takenBack(chain[len(chain)-1])
		if want := []string{was, is}[i%2]; b.lies() != want {
			t.Errorf("%d: %s", i, b.lies())
		}
		chain = append(chain, back)
	}
	by(tx, chain[1])
	by(chain[1], "")
	by(chain[2], chain[3])
	b.refusedBack(tx, "already_compensated")
	b.takenBack(chain[3])
	by(tx, "")
	by(chain[1], chain[2])
	anew, _ := b.takenBack(tx)
	by(tx, anew)
	if b.lies() != was {
		t.Error(b.lies())
	}

	p := b.must(b.as("ada"), commands.Compensate{Transaction: anew}).IDs["proposal"]
	_, err := b.Do(t.Context(), b.as("ada"), commands.AttachPatch{Proposal: p, Expected: 1, PatchInput: commands.PatchInput{Patch: first}})
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "compensation_is_exact" {
		t.Errorf("a patch of the author's: %v", err)
	}
}

// TestTakenBackAtOnce: of many who take the same transaction back all get the
// same proposal.
func TestTakenBackAtOnce(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	defer stop()
	tx := b.applied(first)
	var callers []commands.Caller
	for i := range 8 {
		name := "op" + strconv.Itoa(i)
		b.join(name, "human", "", "operator")
		callers = append(callers, b.as(name))
	}
	ids, errs := make([]string, len(callers)), make([]error, len(callers))
	var all sync.WaitGroup
	for i, c := range callers {
		all.Go(func() {
			r, err := b.Do(t.Context(), c, commands.Compensate{Transaction: tx})
			ids[i], errs[i] = r.IDs["proposal"], err
		})
	}
	all.Wait()
	for i := range ids {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Errorf("%d: %s, %v", i, ids[i], errs[i])
		}
	}
}
