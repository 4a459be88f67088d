package redact_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"roundtable/internal/redact"
)

var secrets = map[string]string{
	"roundtable-token": "rt_TK-01JZ0000000000000000000000_" + strings.Repeat("a", 43),
	"private-key":      "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
	"aws-key":          "AKIA" + "ABCDEFGHIJKLMNOP",
	"github-token":     "ghp_" + strings.Repeat("b", 36),
	"gitlab-token":     "glpat-" + strings.Repeat("c", 20),
	"slack-token":      "xoxb-" + "1234567890-abc",
	"api-key":          "sk-ant-" + strings.Repeat("d", 40),
	"google-key":       "AIza" + strings.Repeat("e", 35),
	"npm-token":        "npm_" + strings.Repeat("f", 36),
	"jwt":              "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
	"bearer":           "Authorization: Bearer abcdefghijklmnop1234",
	"url-password":     "postgres://u:hunter22@",
}

func TestText(t *testing.T) {
	for kind, s := range secrets {
		got := redact.Text("before " + s + " after")
		if want := "before [redacted:" + kind + "] after"; got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	for _, plain := range []string{"", "go test ./...", "a claim on file:rt_TK-x", strings.Repeat("0123456789abcdef", 4), "http://host:8080/x"} {
		if got := redact.Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// TestWholeKeys: a key is taken out with its headers and to its end, and to the
// end of the text if it has none.
func TestWholeKeys(t *testing.T) {
	const mark = "[redacted:private-key]"
	for text, want := range map[string]string{
		"a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\nb": "a\n" + mark + "\nb",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nc2VjcmV0\n-----END PGP PRIVATE KEY BLOCK-----":                                 mark,
		"cut -----BEGIN PRIVATE KEY-----\nc2Vj":                   "cut " + mark,
		"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----": "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----",
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestStruct(t *testing.T) {
	type inner struct{ S []string }
	type outer struct {
		A string
		I inner
		M map[string]any
		T time.Time
		B []byte
		P *int
	}
	s := secrets["aws-key"]
	n, now := 1, time.Now()
	in := outer{A: s, I: inner{[]string{"x", s}}, M: map[string]any{"k": s, "n": 1.5}, T: now, B: []byte(s), P: &n}
	got := redact.Struct(in)
	const mark = "[redacted:aws-key]"
	want := outer{A: mark, I: inner{[]string{"x", mark}}, M: map[string]any{"k": mark, "n": 1.5}, T: now, B: []byte(s), P: &n}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if in.I.S[1] != s || in.M["k"] != s {
		t.Error("the input was changed")
	}
}
