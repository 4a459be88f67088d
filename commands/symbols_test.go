package commands_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/symbol"
	"roundtable/internal/wire"
)

func TestMain(m *testing.M) {
	if status, handled := symbol.Main(os.Args); handled {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

type symbolFiles struct {
	Files []wire.SymbolFile `json:"files"`
	Next  *string           `json:"next_cursor"`
}

// told spells the files of a page.
func told(files []wire.SymbolFile) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %s %s %s", f.Op, f.Path, f.Language, f.Status)
		if f.Reason != "" {
			fmt.Fprintf(&b, " (%s)", f.Reason)
		}
		if f.Outside {
			b.WriteString(" outside")
		}
		b.WriteString("\n")
		for side, list := range [][]wire.Symbol{f.Before, f.After} {
			for _, s := range list {
				fmt.Fprintf(&b, " %s %s %s %s %d-%d\n", []string{"before", "after"}[side], s.Change, s.Kind, s.Name, s.First, s.Last)
			}
		}
	}
	return b.String()
}

// changing makes a proposal of what git says between the tree and the tree
// that edit makes of it.
func changing(t *testing.T, before map[string]string, edit func(x *table)) (x *table, id string) {
	x = setUp(t)
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		cmd.Dir = x.root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(args, err)
		}
		return string(out)
	}
	for name, text := range before {
		x.write(name, text)
	}
	git("add", "-A")
	git("commit", "-q", "--allow-empty", "-m", "before")
	edit(x)
	git("add", "-A")
	patch := git("diff", "--cached", "-M", "-C", "--binary", "HEAD")
	git("reset", "-q", "--hard")
	x.join("ann", auth.Agent, "blue", auth.Implementer)
	x.join("vic", auth.Human, "", auth.Viewer)
	return x, x.must(x.as("ann"), propose(patch)).IDs["proposal"]
}

const goFile = `package a

import "fmt"

// T is.
type T struct {
	a int
}

func (t *T) M() {
	fmt.Println(1)
	fmt.Println(2)
}

func old() {}

func same() {}
`

// TestSymbols: what a patch touches is named on both sides, with what has
// become of it; what cannot be read is said.
func TestSymbols(t *testing.T) {
	x, id := changing(t, map[string]string{
		"a.go": goFile, "b.py": "class A:\n    def m(self):\n        return 1\n", "c.js": "function f() {}\n", "d.txt": "x\n",
		"e.ts": "let a = 1\n", "gone.rs": "fn a() {}\nfn b() {}\n", "moved.java": "class A {\n  int a;\n  void m() {}\n  void n() {}\n  void o() {}\n}\n",
	}, func(x *table) {
		text := strings.Replace(goFile, "	fmt.Println(2)\n", "	fmt.Println(1.5)\n	fmt.Println(2)\n", 1)
		text = strings.Replace(text, "func old() {}", "func fresh() {}", 1)
		x.write("a.go", strings.Replace(text, "import \"fmt\"", "import (\n	\"fmt\"\n)", 1))
		x.write("b.py", "class A:\n    def m(self):\n        return 1\n\n    def n(self): pass\n")
		x.write("c.js", "function f() {}\nfunction g( {}\n")
		x.write("d.txt", "y\n")
		x.write("e.ts", "let a = 1\x00\n")
		x.write("new.tsx", "export const V = () => <a/>;\n")
		x.write("sub/moved.java", "class A {\n  int a;\n  void m() {}\n  void n() { }\n  void o() {}\n}\n")
		for _, name := range []string{"gone.rs", "moved.java"} {
			if err := os.Remove(x.root + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("a.go", x.root+"/l.go"); err != nil {
			t.Fatal(err)
		}
	})
	const want = `modify a.go go ok outside
 before changed method T.M 10-13
 before removed function old 15-15
 after changed method T.M 12-16
 after added function fresh 18-18
modify b.py python ok
 before changed class A 1-3
 after changed class A 1-5
 after added method A.n 5-5
modify c.js javascript unparsed (line 2 does not parse)
modify d.txt  unsupported (symbol_unsupported: symbols are read of Go, Python, JavaScript, TypeScript, Rust and Java)
modify e.ts typescript binary (the patch has it as binary)
delete gone.rs rust ok
 before removed function a 1-1
 before removed function b 2-2
create l.go  unsupported (it is a symbolic link)
create new.tsx typescript ok
 after added function V 1-1
rename sub/moved.java java ok
 before changed class A 1-6
 before changed method A.n 4-4
 after changed class A 1-6
 after changed method A.n 4-4
`
	in := map[string]any{"proposal_id": id}
	got := told(seen[symbolFiles](x, "proposal.patch_symbols", in).Files)
	if got != want {
		t.Errorf("symbols\n%s\nwant\n%s", got, want)
	}
	var paged []wire.SymbolFile
	in["limit"] = 2
	for {
		p := seen[symbolFiles](x, "proposal.patch_symbols", in)
		if len(p.Files) > 2 {
			t.Fatalf("%d files on a page", len(p.Files))
		}
		paged = append(paged, p.Files...)
		if p.Next == nil {
			break
		}
		in["cursor"] = *p.Next
	}
	if told(paged) != got {
		t.Errorf("in pages\n%s\nwant\n%s", told(paged), got)
	}
	if _, err := sent[files](x, "proposal.patch_files", "vic", in); fault.CodeOf(err) != "invalid_cursor" {
		t.Errorf("a cursor of symbols for files: %v", err)
	}
	x.write("a.go", "package other\n") // the tree may move on
	delete(in, "limit")
	delete(in, "cursor")
	if again := told(seen[symbolFiles](x, "proposal.patch_symbols", in).Files); again != got {
		t.Errorf("after a change of the tree\n%s", again)
	}
}

// TestSymbolsPages: the symbols of one file go on on the next page, and none
// is lost or doubled; names that steer a terminal or are secret do not.
func TestSymbolsPages(t *testing.T) {
	const n = 9000
	text := func(letter string) string {
		var b strings.Builder
		b.WriteString("class A { 'a\u202eb'() {} 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'() {} }\n")
		for i := range n {
			fmt.Fprintf(&b, "let %s%d\n", strings.Repeat(letter, 100), i)
		}
		return b.String()
	}
	x, id := changing(t, map[string]string{"a.js": text("a")}, func(x *table) { x.write("a.js", strings.Replace(text("b"), "() {}", "() { }", 2)) })
	in := map[string]any{"proposal_id": id}
	names := map[string]bool{}
	pages, before := 0, 0
	for ; ; pages++ {
		p := seen[symbolFiles](x, "proposal.patch_symbols", in)
		f := p.Files[0]
		if len(p.Files) != 1 || f.Continued != (pages > 0) || f.Status != "ok" {
			t.Fatalf("page %d: %+v", pages, f.Reason)
		}
		for _, s := range f.After {
			if names[s.Name] {
				t.Errorf("%s stands twice", s.Name)
			}
			names[s.Name] = true
		}
		before += len(f.Before)
		if p.Next == nil {
			break
		}
		in["cursor"] = *p.Next
	}
	if !names[`"A.a\342\200\256b"`] || !names["A.[redacted:github-token]"] || len(names) != n+3 || before != n+3 || pages == 0 {
		t.Errorf("%d names after, %d before, on %d pages", len(names), before, pages+1)
	}
}

// TestNoSymbols: a revision that does not fit its base says so; whoever may not
// read the proposal sees nothing.
func TestNoSymbols(t *testing.T) {
	x, id := preview(t, strings.Replace(change, "-two", "-nothing", 1))
	in := map[string]any{"proposal_id": id}
	if _, err := sent[symbolFiles](x, "proposal.patch_symbols", "vic", in); fault.CodeOf(err) != "no_symbols" || !strings.Contains(err.Error(), "apply.context_mismatch") {
		t.Errorf("%v", err)
	}
	attach(x, id, change, 1)
	if got := told(seen[symbolFiles](x, "proposal.patch_symbols", in).Files); !strings.HasPrefix(got, "modify a.txt  unsupported") {
		t.Error(got)
	}
	if _, err := sent[symbolFiles](x, "proposal.patch_symbols", "vic", map[string]any{"proposal_id": id, "revision": 1}); fault.CodeOf(err) != "no_symbols" {
		t.Errorf("%v", err)
	}
	narrow := x.who["vic"]
	narrow.Scope.Proposal = "P-other"
	x.who["narrow"] = narrow
	if _, err := sent[symbolFiles](x, "proposal.patch_symbols", "narrow", in); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("%v", err)
	}
}
