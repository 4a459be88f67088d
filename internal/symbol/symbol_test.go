package symbol_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundtable/internal/symbol"
)

var update = flag.Bool("update", false, "write the lists of symbols anew")

func TestMain(m *testing.M) {
	if status, handled := symbol.Main(os.Args); handled {
		os.Exit(status)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestLanguages: of each language's file in testdata, the symbols are those
// that the file beside it lists.
func TestLanguages(t *testing.T) {
	files, err := filepath.Glob("testdata/languages/*.txt")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, list := range files {
		name := strings.TrimSuffix(filepath.Base(list), ".txt")
		data, err := os.ReadFile(filepath.Join("testdata/languages", name+".src"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		f, err := symbol.Read(t.Context(), "x/"+name, data, symbol.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := spell(f); got != string(want) {
			if *update {
				if err := os.WriteFile(list, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("%s has\n%s\nwant\n%s", name, got, want)
		}
	}
}

func spell(f symbol.File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Language, f.Status)
	if f.Reason != "" {
		b.WriteString(": " + f.Reason)
	}
	b.WriteString("\n")
	for _, s := range f.Symbols {
		fmt.Fprintf(&b, "%d-%d %s %s\n", s.First, s.Last, s.Kind, s.Name)
	}
	return b.String()
}

func read(t *testing.T, name, text string, l symbol.Limits) symbol.File {
	t.Helper()
	f, err := symbol.Read(t.Context(), name, []byte(text), l)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFaults: of what does not parse, that is given which ends before the
// fault; what is no text, or beyond a limit, is said.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.go", "package a\n\nfunc f() {}\n\nfunc g( {}\n\nfunc h() {}\n", "go unparsed: line 5 does not parse: expected ')', found '{'\n3-3 function f\n"},
		{"a.go", "", "go unparsed: line 1 does not parse: expected 'package', found 'EOF'\n"},
		{"a.go", "//line other.go:100\npackage a\nfunc f() {\n\n}\n", "go ok\n3-5 function f\n"},
		{"a.py", "def f():\n    pass\n\ndef g(:\n    pass\n", "python unparsed: line 4 does not parse\n1-2 function f\n"},
		{"a.js", "class A {\n  m() {}\n  n( {\n}\n", "javascript unparsed: line 1 does not parse\n"},
		{"a.ts", "let a: = 1\n", "typescript unparsed: line 1 does not parse\n"},
		{"a.rs", "fn a() {}\nfn b( {}\n", "rust unparsed: line 2 does not parse\n1-1 function a\n"},
		{"A.java", "class A {\n  int a;\n  int b\n}\n", "java unparsed: line 3 does not parse\n2-2 field A.a\n"},
		{"a.py", "", "python ok\n"},
		{"a.js", "\ufefflet a", "javascript ok\n1-1 variable a\n"},
		{"a.js", "let a = 'x\x00'", "javascript binary: it holds a NUL byte\n"},
		{"a.js", "let a\nlet b = '\xff'", "javascript unparsed: line 2 is not UTF-8\n"},
		{"a.c", "int a;", " unsupported: symbol_unsupported: symbols are read of Go, Python, JavaScript, TypeScript, Rust and Java\n"},
		{"js", "let a", " unsupported: symbol_unsupported: symbols are read of Go, Python, JavaScript, TypeScript, Rust and Java\n"},
		{"a.js", strings.Repeat("let a;", 200), "javascript too_large: it has 1200 bytes, and at most 1000 are read for symbols\n"},
		{"a.js", strings.Repeat("let a;", 51), "javascript too_large: it has more than 50 symbols\n"},
		{"a.go", "package a\n" + strings.Repeat("var a int;", 51), "go too_large: it has more than 50 symbols\n"},
		{"a.rs", strings.Repeat("mod a{", 30) + strings.Repeat("}", 30), "rust too_large: its symbols are nested deeper than 10\n"},
		{"a.js", "let " + strings.Repeat("a", 600), "javascript ok\n"},
	} {
		if got := spell(read(t, c.name, c.text, symbol.Limits{Bytes: 1000, Symbols: 50, Depth: 10})); got != c.want {
			t.Errorf("%s %q has\n%s\nwant\n%s", c.name, c.text, got, c.want)
		}
	}
}

// hostile are texts that make a parser slow, or its stack or memory large.
func hostile(name string, n int) string {
	unit := map[string]string{"a.py": "{", "a.js": "`", "a.ts": "a=>", "a.tsx": "<a>", "a.rs": "a;", "A.java": "a<", "a.go": "x?"}[name]
	return strings.Repeat(unit, n/len(unit))
}

// TestReader: a file that its parser cannot bear costs a bounded time and takes
// nothing else with it; the next one is read.
func TestReader(t *testing.T) {
	var r symbol.Reader
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range []string{"a.py", "a.js", "a.ts", "a.tsx", "a.rs", "A.java", "a.go"} {
		r.Limits.Time = 100 * time.Millisecond
		f, err := r.Read(t.Context(), symbol.Source{Name: name, Data: []byte(hostile(name, 1<<20))})
		if err != nil || f.Status == symbol.OK || f.Reason == "" {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
		r.Limits.Time = time.Minute
		f, err = r.Read(t.Context(), symbol.Source{Name: "b.js", Data: []byte("function f() {}\n")})
		if err != nil || spell(f) != "javascript ok\n1-1 function f\n" {
			t.Errorf("after %s: %+v, %v", name, f, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := r.Read(ended, symbol.Source{Name: "b.js", Data: []byte("let a")}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzRead: any text is read, and what comes out is in order and in the file.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/languages/*.src")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	ends := []string{"go", "py", "js", "ts", "tsx", "rs", "java"}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := range ends {
			f.Add(byte(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, end byte, data []byte) {
		if len(data) > 32<<10 { // beyond, only a Reader is safe
			t.Skip()
		}
		got, err := symbol.Read(t.Context(), "x."+ends[int(end)%len(ends)], data, symbol.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if (got.Status == symbol.OK) != (got.Reason == "") {
			t.Fatalf("%+v", got)
		}
		lines, last := strings.Count(string(data), "\n")+1, 0
		for _, s := range got.Symbols {
			if s.First < max(last, 1) || s.Last < s.First || s.Last > lines || s.Name == "" || s.Kind == "" {
				t.Fatalf("%+v of %d lines, after one at %d", s, lines, last)
			}
			last = s.First
		}
	})
}
