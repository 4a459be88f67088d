package patch_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

// TestShowLine: what is seen is left as it is, what is not is escaped, and then
// nothing is lost.
func TestShowLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a\tb": "a\tb", `C:\x "y"`: `C:\x "y"`, "naïve 日本": "naïve 日本",
		"\x1b[31m\\n": `\x1b[31m\\n`, "a\rb": `a\rb`, "x\u202ey": `x\u202ey`, "\u200b": `\u200b`, "caf\xe9": `caf\xe9`, "\u00ad\t": "\\u00ad\t", "\U000e0041": `\U000e0041`,
		"\u2028": `\u2028`, "\x00": `\x00`,
	} {
		got, escaped := patch.ShowLine([]byte(in))
		if got != want || escaped != (in != want) {
			t.Errorf("%q is shown as %q (%v), want %q", in, got, escaped, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(rt, "line")
		got, escaped := patch.ShowLine([]byte(in))
		odd := strings.ContainsFunc(got, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) || 0x202a <= r && r <= 0x202e })
		if odd || !utf8.ValidString(got) {
			rt.Fatalf("%q is shown as %q", in, got)
		}
		if !escaped && got != in {
			rt.Fatalf("%q became %q", in, got)
		}
		again, _ := patch.ShowLine([]byte(got))
		if !escaped && again != got {
			rt.Fatalf("%q, then %q", got, again)
		}
	})
}
