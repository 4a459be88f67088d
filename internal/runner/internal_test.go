package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCollector: whatever the pieces, what is kept is the head and the tail of
// the whole.
func TestCollector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 40).Draw(t, "most")
		c := newCollector(most)
		var all []byte
		for _, piece := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 50), 0, 12).Draw(t, "pieces") {
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
			all = append(all, piece...)
		}
		o := c.output()
		sum := sha256.Sum256(all)
		if o.Total != int64(len(all)) || o.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v of %d bytes", o, len(all))
		}
		if !bytes.HasPrefix(all, o.Head) || !bytes.HasSuffix(all, o.Tail) || o.Omitted != int64(len(all)-len(o.Head)-len(o.Tail)) {
			t.Errorf("%+v of %q", o, all)
		}
		half := most / 2
		if want := min(len(all), 2*half); len(o.Head)+len(o.Tail) != want || len(o.Head) != min(len(all), half) {
			t.Errorf("%+v of %q: %d bytes kept, want %d", o, all, len(o.Head)+len(o.Tail), want)
		}
		if o.Omitted == 0 && !bytes.Equal(o.Bytes(), all) || o.Omitted > 0 && !strings.Contains(string(o.Bytes()), "left out") {
			t.Errorf("%q of %q", o.Bytes(), all)
		}
	})
}

// TestSummary: it is short, and fit to be shown, whatever was printed.
func TestSummary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.SampledFrom([][]byte{
			[]byte("\n"), []byte("\r\n"), []byte("\x1b[31m"), []byte("\x1b["), bytes.Repeat([]byte("ä"), 300), []byte("\u202e"), []byte("word"),
		}))).Draw(t, "pieces")
		c := newCollector(rapid.IntRange(2, 4000).Draw(t, "most"))
		for _, p := range pieces {
			c.Write(p)
		}
		summary := c.output().Summary()
		lines := strings.Split(summary, "\n")
		if summary == "" || len(lines) > summaryLines || strings.TrimSpace(lines[0]) == "" || strings.TrimSpace(lines[len(lines)-1]) == "" {
			t.Errorf("%q", summary)
		}
		for _, line := range lines {
			if len(line) > summaryLine+len("…") || strings.ContainsAny(line, "\x1b\r\x00\u202e") || strings.ToValidUTF8(line, "") != line {
				t.Errorf("%q", line)
			}
		}
	})
}

// talk sends requests to a build cache and returns its answers.
func talk(t *testing.T, c buildCache, requests string) ([]cacheResponse, error) {
	t.Helper()
	var out bytes.Buffer
	err := c.serve(strings.NewReader(requests), &out)
	var answers []cacheResponse
	for d := json.NewDecoder(&out); d.More(); {
		var a cacheResponse
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	return answers, err
}

func TestBuildCache(t *testing.T) {
	c := buildCache{lower: t.TempDir(), own: filepath.Join(t.TempDir(), "own")}
	const (
		get   = `{"ID":2,"Command":"get","ActionID":"AQI="}` + "\n"
		put   = `{"ID":1,"Command":"put","ActionID":"AQI=","OutputID":"AwQ=","BodySize":5}` + "\n\n" + `"aGVsbG8="` + "\n"
		close = `{"ID":9,"Command":"close"}` + "\n"
	)
	one := func(requests string) cacheResponse {
		t.Helper()
		answers, _ := talk(t, c, requests+close)
		if len(answers) != 3 || len(answers[0].KnownCommands) != 3 || answers[2].ID != 9 {
			t.Fatalf("%+v", answers)
		}
		return answers[1]
	}
	if a := one(get); !a.Miss || a.ID != 2 {
		t.Errorf("of an empty cache: %+v", a)
	}
	if a := one(put); a.Err != "" || a.ID != 1 || content(t, a.DiskPath) != "hello" {
		t.Errorf("%+v", a)
	}
	if a := one(get); a.Miss || string(a.OutputID) != "\x03\x04" || a.Size != 5 || content(t, a.DiskPath) != "hello" {
		t.Errorf("%+v", a)
	}
	if left, err := os.ReadDir(c.lower); err != nil || len(left) != 0 {
		t.Error("the lower cache was changed")
	}
	c = buildCache{lower: c.own, own: t.TempDir()}
	if a := one(get); a.Miss || content(t, a.DiskPath) != "hello" {
		t.Errorf("from the lower cache: %+v", a)
	}
	for name, spoil := range map[string]func() error{
		"output cut":  func() error { return os.WriteFile(entry(c.lower, []byte{3, 4}, "d"), []byte("hell"), 0o600) },
		"output gone": func() error { return os.Remove(entry(c.lower, []byte{3, 4}, "d")) },
		"entry cut":   func() error { return os.WriteFile(entry(c.lower, []byte{1, 2}, "a"), []byte("v1 01"), 0o600) },
	} {
		c = buildCache{lower: t.TempDir(), own: c.lower}
		if a := one(put); a.Err != "" {
			t.Fatal(a.Err)
		}
		c = buildCache{lower: c.own, own: t.TempDir()}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if a := one(get); !a.Miss {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, bad := range []string{
		`{"ID":3,"Command":"forget"}` + "\n", `{"ID":3,"Command":"put","ActionID":"AQI=","OutputID":"AwQ=","BodySize":6}` + "\n" + `"aGVsbG8="` + "\n",
		`{"ID":3,"Command":"put"}` + "\n",
	} {
		if a := one(bad); a.Err == "" || a.ID != 3 {
			t.Errorf("%s: %+v", bad, a)
		}
	}
	for _, bad := range []string{"{", `{"ID":"x"}`, `{"ID":3,"Command":"put","BodySize":5}` + "\n" + `"%%%"`} {
		if answers, err := talk(t, c, bad); err == nil || len(answers) != 1 {
			t.Errorf("%s: %+v, %v", bad, answers, err)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestQuoted(t *testing.T) {
	if got := quoted("/a b", "c", `d'e`, `f"g`); got != `'/a b' c "d'e" 'f"g'` {
		t.Error(got)
	}
}
