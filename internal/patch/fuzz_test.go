package patch_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// FuzzApply: any patch on any file gives a result that is what it says, or a
// refusal.
func FuzzApply(f *testing.F) {
	for _, c := range loadCases(f) {
		if len(c.Patch) > 10_000 {
			continue
		}
		for _, e := range c.Before {
			if e.Mode == "100644" && len(e.Data) < 10_000 {
				f.Add(c.Patch, e.Path, e.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path string, content []byte) {
		if patch.CheckPath(path, patch.Options{}) != nil {
			path = "k"
		}
		tree := patch.NewMapTree()
		tree.Put(path, "100644", content)
		check(t, data, patch.Options{IgnoreOID: true, MaxFileBytes: 1 << 16, MaxTotalBytes: 1 << 18}, tree)
	})
}

// FuzzDelta: any bytes as a binary delta give the file that they say, or a
// refusal; never more than the limit.
func FuzzDelta(f *testing.F) {
	f.Add([]byte("base"), []byte{4, 4, 0x90, 4})
	f.Add([]byte("base"), []byte{4, 3, 3, 'n', 'e', 'w'})
	f.Add([]byte("base"), []byte{4, 6, 2, 'x', 'y', 0x91, 0, 4})
	f.Add([]byte("base"), []byte{4, 0x80, 0x80, 0x80, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte(""), []byte{0, 0})
	f.Add([]byte("base"), []byte{4, 1, 0})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if len(base) > 1<<12 || len(delta) > 1<<12 {
			t.Skip()
		}
		const limit = 1 << 16
		want, good := undelta(base, delta, limit)
		text := fmt.Sprintf("diff --git a/k b/k\nindex %s..%s 100644\nGIT binary patch\ndelta %d\n%s\n", patch.BlobID(base, false), patch.BlobID(want, false), len(delta), armour(t, delta))
		tree := patch.NewMapTree()
		tree.Put("k", "100644", base)
		o := patch.Options{MaxFileBytes: limit, MaxTotalBytes: 4 * limit}
		check(t, []byte(text), o, tree)
		res, err := apply([]byte(text), o, tree)
		switch same := bytes.Equal(base, want); {
		case err == nil && (!good || !bytes.Equal(res.Changes[0].Content, want)):
			t.Fatalf("gives %q, want %q %v", res.Changes[0].Content, want, good)
		case err != nil && good && !same:
			t.Fatalf("is refused: %v; it gives %q", err, want)
		}
	})
}

// undelta applies a delta as Git's documentation has it.
func undelta(base, delta []byte, limit int) (out []byte, ok bool) {
	size := func() (n int) {
		for shift := 0; len(delta) > 0 && shift < 56; shift += 7 {
			c := delta[0]
			delta = delta[1:]
			if n |= int(c&0x7f) << shift; c < 0x80 {
				return n
			}
		}
		return -1
	}
	if from, to := size(), size(); from != len(base) || to < 0 || to > limit {
		return nil, false
	} else {
		limit = to
	}
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return nil, false
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var at, n int
		for bit := range 7 {
			if op>>bit&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, false
			}
			if bit < 4 {
				at |= int(delta[0]) << (8 * bit)
			} else {
				n |= int(delta[0]) << (8 * (bit - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if at > len(base) || n > len(base)-at || len(out)+n > limit {
			return nil, false
		}
		out = append(out, base[at:at+n]...)
	}
	return out, len(out) == limit
}

// armour writes bytes as Git's binary patches do: deflated, in base 85.
func armour(t testing.TB, data []byte) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	var b strings.Builder
	for line := range chunks(z.Bytes(), 52) {
		if n := len(line); n <= 26 {
			b.WriteByte(byte('A' + n - 1))
		} else {
			b.WriteByte(byte('a' + n - 27))
		}
		for group := range chunks(line, 4) {
			var v uint32
			for i := range 4 {
				v <<= 8
				if i < len(group) {
					v |= uint32(group[i])
				}
			}
			var five [5]byte
			for i := 4; i >= 0; i-- {
				five[i], v = digits[v%85], v/85
			}
			b.Write(five[:])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// FuzzNames: a name that is quoted is read back as it was, and any name in a
// header, quoted or not, is the one that is meant, or refused.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"k", "a b", "tab\there", "q\"uote", "back\\slash", "caf\xe9", "日本", "new\nline", "\\303\\251", "../x", ".git/x", "a/b/../c", "", " ", "x ", "\x00"} {
		f.Add(s, `"a/\303\251"`)
	}
	f.Add("k", `"\x41"`)
	f.Add("k", `"a/k`)
	f.Add("k", `"a/k\777"`)
	f.Fuzz(func(t *testing.T, name, raw string) {
		quoted := func(prefix string) string { return patch.Quote(prefix + name) }
		text := fmt.Sprintf("diff --git %s %s\nnew file mode 100644\n--- /dev/null\n+++ %s\n@@ -0,0 +1 @@\n+x\n", quoted("a/"), quoted("b/"), quoted("b/"))
		tree := patch.NewMapTree()
		check(t, []byte(text), patch.Options{}, tree)
		res, err := apply([]byte(text), patch.Options{}, tree)
		if err == nil && (len(res.Changes) != 1 || res.Changes[0].Path != name) {
			t.Fatalf("%q is %+v", name, res.Changes)
		}
		if err != nil && patch.CheckPath(name, patch.Options{}) == nil {
			t.Fatalf("%q is refused: %v", name, err)
		}
		raw = strings.NewReplacer("\n", "", "\r", "").Replace(raw)
		check(t, []byte("--- "+raw+"\n+++ "+raw+"\n@@ -0,0 +1 @@\n+x\n"), patch.Options{}, tree)
		check(t, []byte("diff --git "+raw+"\nrename from "+raw+"\nrename to "+raw+"\n"), patch.Options{}, tree)
	})
}
