package events

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write missing golden files")

// TestStored decodes, for every type and schema ever released, a stored row
// kept in testdata: nothing that was written may stop being readable, and a
// field of the newest schema keeps its name and its kind of value.
func TestStored(t *testing.T) {
	for name, typ := range types.byName {
		for schema := 1; schema <= typ.schema(); schema++ {
			file := filepath.Join("testdata", fmt.Sprintf("%s.%d.json", name, schema))
			b, err := os.ReadFile(file)
			if os.IsNotExist(err) && *update && schema == typ.schema() {
				b, _ = json.MarshalIndent(filled(typ.goType), "", "  ")
				os.WriteFile(file, append(b, '\n'), 0o644)
			} else if err != nil {
				t.Errorf("%v; go test ./events -update writes it", err)
				continue
			}
			p, err := Decode(name, schema, b)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if schema == typ.schema() {
				keeps(t, file, b, p)
			}
		}
	}
}

// keeps checks that every field stored in file is written again as it was.
func keeps(t *testing.T, file string, stored []byte, p Payload) {
	var was, is map[string]any
	_, _, again, err := Encode(p)
	if err = errors.Join(err, json.Unmarshal(stored, &was), json.Unmarshal(again, &is)); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	for k, v := range was {
		if !reflect.DeepEqual(v, is[k]) {
			t.Errorf("%s: field %q was %v and is now %v", file, k, v, is[k])
		}
	}
}

// TestListed finds the structs with a Stream method that types forgot.
func TestListed(t *testing.T) {
	listed := map[string]bool{}
	for _, z := range Zeros() {
		listed[reflect.TypeOf(z).Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Stream" {
				if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok && !listed[id.Name] {
					t.Errorf("%s is a payload but is not in types", id.Name)
				}
			}
		}
	}
}

// filled returns a value of t in which no field is zero, so that a stored row
// shows every field.
func filled(t reflect.Type) any {
	v := reflect.New(t).Elem()
	fill(v)
	return v.Interface()
}

func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)))
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(0.5)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{"key": "value"}))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
