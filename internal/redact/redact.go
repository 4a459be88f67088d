// Package redact takes secrets out of what is about to be written down or
// shown.
//
// What always holds: text without a known secret comes back as it was; what is
// taken out is replaced by a mark that says what kind it was and nothing of
// its value. It knows forms of secrets, not all secrets: it is a net below the
// rule that nobody puts one there. Patches and images are never redacted.
package redact

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
)

// A form is a kind of secret that is known by its look.
type form struct {
	kind  string
	marks []string
	re    *regexp.Regexp
}

// forms are the secrets that are known by their look. A text without one of
// the marks of a form, which are quick to look for, has no secret of it.
var forms = []form{
	{"roundtable-token", []string{"rt_TK-"}, regexp.MustCompile(`\brt_TK-[0-9A-HJKMNP-TV-Z]{26}_[A-Za-z0-9_-]{43}`)},
	{"private-key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|\z)`)},
	{"aws-key", []string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b`)},
	{"gitlab-token", []string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"slack-token", []string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
	{"api-key", []string{"sk-"}, regexp.MustCompile(`\bsk-(ant-|proj-)?[A-Za-z0-9_-]{32,}`)},
	{"google-key", []string{"AIza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`)},
	{"npm-token", []string{"npm_"}, regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36}\b`)},
	{"jwt", []string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)},
	{"bearer", []string{"uthorization:"}, regexp.MustCompile(`\b[Aa]uthorization: *[Bb]earer +[A-Za-z0-9._~+/=-]{16,}`)},
	{"url-password", []string{"://"}, regexp.MustCompile(`\b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]{3,}@`)},
}

// Text returns s with every known secret replaced.
func Text(s string) string {
	if len(s) < shortest {
		return s
	}
	return string(Bytes([]byte(s)))
}

// shortest is fewer bytes than any secret of a known form has.
const shortest = 8

// Bytes returns b with every known secret replaced. It does not change b.
func Bytes(b []byte) []byte {
	for _, f := range forms {
		if f.marked(b) {
			b = f.re.ReplaceAll(b, []byte("[redacted:"+f.kind+"]"))
		}
	}
	return b
}

// Lines returns the lines with every known secret replaced, also one that goes
// over several: each line of it is. It does not change lines.
func Lines(lines []string) []string {
	b, found := []byte(strings.Join(lines, "\n")), false
	for _, f := range forms {
		if f.marked(b) {
			b, found = f.re.ReplaceAllFunc(b, f.mask), true
		}
	}
	if !found {
		return lines
	}
	return strings.Split(string(b), "\n")
}

// mask is the mark, on each line of a secret that has something on it.
func (f form) mask(secret []byte) []byte {
	parts := bytes.Split(secret, []byte("\n"))
	for i, p := range parts {
		if len(p) > 0 {
			parts[i] = []byte("[redacted:" + f.kind + "]")
		}
	}
	return bytes.Join(parts, []byte("\n"))
}

func (f form) marked(b []byte) bool {
	for _, m := range f.marks {
		if bytes.Contains(b, []byte(m)) {
			return f.re.Match(b)
		}
	}
	return false
}

// Struct returns v, a struct, with every string in it redacted, at any depth.
// It does not change v.
func Struct[T any](v T) T {
	r := reflect.ValueOf(&v).Elem()
	r.Set(value(r))
	return v
}

func value(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); s != "" {
			return reflect.ValueOf(Text(s)).Convert(v.Type())
		}
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() && v.Kind() == reflect.Interface {
			return value(v.Elem())
		}
	case reflect.Slice:
		if !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 {
			out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			for i := range v.Len() {
				out.Index(i).Set(value(v.Index(i)))
			}
			return out
		}
	case reflect.Map:
		if !v.IsNil() {
			out := reflect.MakeMapWithSize(v.Type(), v.Len())
			for it := v.MapRange(); it.Next(); {
				out.SetMapIndex(it.Key(), value(it.Value()))
			}
			return out
		}
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(value(v.Field(i)))
			}
		}
		return out
	}
	return v
}
