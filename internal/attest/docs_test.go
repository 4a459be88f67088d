package attest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"roundtable/internal/attest"
)

const document = "../../docs/receipts.md"

// TestDocument: the page that says how a receipt is written has every field.
func TestDocument(t *testing.T) {
	page := string(read(t, document))
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" {
			return
		}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(page) {
				t.Errorf("%s does not name %s of %s", document, name, typ)
			}
			walk(typ.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[attest.Statement]())
	for _, name := range []string{attest.PayloadType, attest.StatementType, attest.PredicateType} {
		if !strings.Contains(page, name) {
			t.Errorf("%s does not name %s", document, name)
		}
	}
}

// TestStandardTools: the commands of the page verify a receipt, and do not
// verify an altered one.
func TestStandardTools(t *testing.T) {
	for _, tool := range []string{"openssl", "jq", "base64", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	_, part, _ := strings.Cut(string(read(t, document)), "\n## Check it with standard tools\n")
	_, script, _ := strings.Cut(part, "```\n")
	script, _, ok := strings.Cut(script, "```")
	if !ok {
		t.Fatal("the page has no commands")
	}
	r, keys := ring(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "receipts.pub"), []byte(keys[0].PEM()), 0o600)
	try := func(receipt string) (string, error) {
		write(t, filepath.Join(dir, "receipt.json"), []byte(receipt), 0o600)
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
		cmd.Dir, cmd.Env = dir, os.Environ()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	good := string(sign(t, r, simple()))
	if out, err := try(good); err != nil || !strings.Contains(out, keys[0].ID) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := try(strings.Replace(good, `"payload":"eyJf`, `"payload":"eyJg`, 1)); err == nil {
		t.Errorf("an altered one: %s", out)
	}
}
