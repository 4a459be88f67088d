package patch_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

const digits85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// pack spells bytes as a part of a binary section: size, then zlib in base85.
func pack(kind string, size int, data, tail []byte) string {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(data)
	w.Close()
	z.Write(tail)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d\n", kind, size)
	for left := z.Bytes(); len(left) > 0; {
		n := min(52, len(left))
		b.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[n-1])
		for i := 0; i < n; i += 4 {
			var v uint32
			for k := range 4 {
				v <<= 8
				if i+k < n {
					v |= uint32(left[i+k])
				}
			}
			e := make([]byte, 5)
			for k := 4; k >= 0; k-- {
				e[k], v = digits85[v%85], v/85
			}
			b.Write(e)
		}
		b.WriteByte('\n')
		left = left[n:]
	}
	return b.String() + "\n"
}

// TestBinary: damaged or greedy binary data is refused by its class before a
// file is looked at, and good data comes out exactly.
func TestBinary(t *testing.T) {
	src, dst := []byte("0123456789\x00"), []byte("345hello\x00")
	ids := patch.BlobID(src, false) + ".." + patch.BlobID(dst, false)
	copy3, insert := []byte{0x80 | 1 | 16, 3, 3}, append([]byte{6}, "hello\x00"...)
	delta := func(from, to byte, ops ...[]byte) string {
		d := append([]byte{from, to}, bytes.Join(ops, nil)...)
		return pack("delta", len(d), d, nil)
	}
	bomb := append([]byte{11, 0x80, 0x80, 0x80, 0x80, 1}, bytes.Repeat([]byte{0x80 | 16, 11}, 100)...) // says 256 MiB
	for _, c := range []struct {
		name, ids, part string
		class           patch.Class
	}{
		{"delta", ids, delta(11, 9, copy3, insert), ""},
		{"literal", ids, pack("literal", len(dst), dst, nil), ""},
		{"literal and reverse", ids, pack("literal", len(dst), dst, nil) + pack("literal", len(src), src, nil), ""},
		{"damaged reverse", ids, pack("literal", len(dst), dst, nil) + pack("literal", len(src)+1, src, nil), patch.BinaryCorrupt},
		{"too short", ids, pack("literal", len(dst)+1, dst, nil), patch.BinaryCorrupt},
		{"too long", ids, pack("literal", len(dst)-1, dst, nil), patch.BinaryCorrupt},
		{"bytes after the end", ids, pack("literal", len(dst), dst, []byte{0}), patch.BinaryCorrupt},
		{"size with a sign", ids, "literal +9\n" + "HcmV?d00001\n\n", patch.BinaryCorrupt},
		{"another result", ids, pack("literal", len(src), src, nil), patch.BinaryCorrupt},
		{"another source", patch.BlobID([]byte("other"), false) + ".." + patch.BlobID(dst, false), pack("literal", len(dst), dst, nil), patch.PreimageMismatch},
		{"delta for another size", ids, delta(12, 9, copy3, insert), patch.BinaryCorrupt},
		{"delta too short", ids, delta(11, 9, copy3), patch.BinaryCorrupt},
		{"delta too long", ids, delta(11, 9, copy3, insert, copy3), patch.BinaryCorrupt},
		{"delta opcode 0", ids, delta(11, 9, copy3, []byte{0}), patch.BinaryCorrupt},
		{"delta beyond the source", ids, delta(11, 9, []byte{0x80 | 1 | 16, 10, 9}), patch.BinaryCorrupt},
		{"delta cut", ids, delta(11, 9, copy3, []byte{6, 'h'}), patch.BinaryCorrupt},
		{"delta without sizes", ids, pack("delta", 1, []byte{0x80}, nil), patch.BinaryCorrupt},
		{"delta empty", ids, pack("delta", 0, nil, nil), patch.BinaryCorrupt},
		{"delta bomb", ids, pack("delta", len(bomb), bomb, nil), patch.LimitFileBytes},
		{"short ids", ids[:7] + ".." + ids[42:49], pack("literal", len(dst), dst, nil), patch.BinaryWithoutOID},
		{"no empty line", ids, strings.TrimSuffix(pack("literal", len(dst), dst, nil), "\n"), patch.Truncated},
		{"group too large", ids, "literal 1\nD~~~~~\n\n", patch.BinaryCorrupt},
		{"length and text disagree", ids, "literal 1\nZ~~~~~\n\n", patch.BinaryCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := patch.NewMapTree()
			tree.Put("k", "100644", src)
			res, err := apply([]byte("diff --git a/k b/k\nindex "+c.ids+" 100644\nGIT binary patch\n"+c.part), patch.Options{}, tree)
			switch {
			case c.class == "" && err != nil:
				t.Error(err)
			case c.class == "" && !bytes.Equal(res.Changes[0].Content, dst):
				t.Errorf("made %q", res.Changes[0].Content)
			case c.class != "" && err == nil:
				t.Errorf("made %q, want %s", res.Changes[0].Content, c.class)
			case c.class != "" && refusal(t, err).Class != c.class:
				t.Errorf("%v, want %s", err, c.class)
			}
		})
	}
}

// TestInflated: many small sections that inflate to much are bounded together.
func TestInflated(t *testing.T) {
	var b strings.Builder
	zeros := make([]byte, 1<<20)
	part := pack("literal", len(zeros), zeros, nil)
	for i := range 20 {
		fmt.Fprintf(&b, "diff --git a/f%[1]d b/f%[1]d\nnew file mode 100644\nindex %[2]s..%[3]s\nGIT binary patch\n%[4]s", i, strings.Repeat("0", 40), patch.BlobID(zeros, false), part)
	}
	if _, err := patch.Parse([]byte(b.String()), patch.Options{}); err != nil {
		t.Fatal(err)
	}
	_, err := patch.Parse([]byte(b.String()), patch.Options{MaxTotalBytes: 16 << 20})
	if r := refusal(t, err); r.Class != patch.LimitFileBytes {
		t.Error(r)
	}
}
