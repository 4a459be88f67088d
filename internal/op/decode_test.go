package op_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

type inner struct {
	Path string `json:"path" maxlen:"5"`
	Line int    `json:"line,omitempty" min:"1" max:"9"`
}

type input struct {
	Title   string            `json:"title" minlen:"1"`
	Risk    string            `json:"risk,omitempty" enum:"low,normal,high"`
	Count   *int64            `json:"count,omitempty"`
	Small   int8              `json:"small,omitempty"`
	Share   float64           `json:"share,omitempty" min:"0" max:"1"`
	Really  bool              `json:"really,omitempty"`
	Tests   []string          `json:"tests,omitempty" maxitems:"3" maxlen:"8"`
	Files   []inner           `json:"files,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Free    any               `json:"free,omitempty"`
	Before  time.Time         `json:"before,omitzero"`
	TaskRef string            `json:"task_id,omitempty"`
	Raw     string            `json:"raw,omitempty"`
	Base64  string            `json:"raw_base64,omitempty"`
}

func decode(in string) (input, *fault.Error) {
	var v input
	err := op.Decode([]byte(in), op.SchemaOf[input](), &v)
	f, _ := errors.AsType[*fault.Error](err)
	if err != nil && f == nil {
		panic(err)
	}
	return v, f
}

func TestDecodeRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for in, want := range map[string]string{
		``:                     "missing_field /title is required",
		`{}`:                   "missing_field /title is required",
		`null`:                 "invalid_field  must be an object, not null",
		`[1]`:                  "invalid_field  must be an object, not an array",
		`{"title":"a"} {}`:     "malformed_json",
		`{"title":"a"}x`:       "malformed_json",
		`{"title":"a",}`:       "malformed_json",
		"\ufeff{}":             "malformed_json",
		"{\"title\":\"\xff\"}": "malformed_json /title is no Unicode text",
		"{\"title\":\"a\",\"free\":[\"x\",{\"y\":\"é\xe9\"}]}": "malformed_json /free/1/y is no Unicode text",
		"{\"title\":\"a\",\"tests\":[\xff]}":                   "malformed_json",
		"{\"\xff\":1}":                                         "malformed_json",
		"{\"raw\":\"\xff\"}":                                   "malformed_json /raw is no Unicode text; send the bytes as raw_base64, which takes any",
		`{"raw":"\udfff"}`:                                     "malformed_json /raw is no Unicode text; send the bytes as raw_base64, which takes any",
		`{"title":"a","title":"b"}`:                            "malformed_json /title stands twice",
		`{"title":"a","\u0074itle":"b"}`:                       "malformed_json /title stands twice",
		`{"title":"a","free":[{"a":{"b":1,"b":2}}]}`:           "malformed_json /free/0/a/b stands twice",
		`{"title":"\ud800"}`:                                   "malformed_json /title is no Unicode text",
		`{"title":"\udc00\ud800"}`:                             "malformed_json",
		`{"title":"\ud800\u0041"}`:                             "malformed_json",
		`{"title":"a","free":{"\udfff":1}}`:                    "malformed_json",
		`{"title":"a","free":` + deep(64) + `}`:                "malformed_json",
		`{"Title":"a"}`:                                        `unknown_field /Title is no field here; did you mean "title"? /title is required`,
		`{"titel":"a"}`:                                        `unknown_field /titel is no field here; did you mean "title"? /title is required`,
		`{"title":"a","taskId":"T"}`:                           `unknown_field /taskId is no field here; did you mean "task_id"?`,
		`{"title":"a","actor":"PR-1"}`:                         `unknown_field /actor is no field here: who asks is known from the credential alone`,
		`{"title":"a","a/b~c":1}`:                              `unknown_field /a~1b~0c is no field here; the fields are `,
		`{"title":1}`:                                          "invalid_field /title must be a string, not a number",
		`{"title":null}`:                                       "invalid_field /title must be a string, not null: leave the field out instead",
		`{"title":""}`:                                         "invalid_field /title must have at least 1 characters, not 0",
		`{"title":"a","risk":"High"}`:                          `invalid_field /risk must be one of "low", "normal", "high", not "High"`,
		`{"title":"a","count":1.0}`:                            "invalid_field /count must be an integer of 64 bits without fraction or exponent, not 1.0",
		`{"title":"a","count":1e2}`:                            "invalid_field /count must be an integer of 64 bits without fraction or exponent, not 1e2",
		`{"title":"a","count":9223372036854775808}`:            "invalid_field /count must be an integer of 64 bits without fraction or exponent, not 9223372036854775808",
		`{"title":"a","count":"7"}`:                            "invalid_field /count must be an integer, not a string",
		`{"title":"a","small":128}`:                            "invalid_field /small may be at most 127, not 128",
		`{"title":"a","share":1.5}`:                            "invalid_field /share may be at most 1, not 1.5",
		`{"title":"a","free":1e999}`:                           "invalid_field /free is too large for a number: 1e999",
		`{"title":"a","really":"true"}`:                        "invalid_field /really must be a boolean, not a string",
		`{"title":"a","tests":["a","b","c","d"]}`:              "invalid_field /tests may have at most 3 items, not 4",
		`{"title":"a","tests":["123456789"]}`:                  "invalid_field /tests/0 may have at most 8 characters, not 9",
		`{"title":"a","labels":{"a":1}}`:                       "invalid_field /labels/a must be a string, not a number",
		`{"title":"a","before":"today"}`:                       "invalid_field /before must be a time such as 2026-01-31T12:00:00Z (RFC 3339), not \"today\"",
		`{"files":[{"path":"toolong"},{"path":"a","line":0,"lin":1}],"titel":2}`: "unknown_field " +
			`/files/0/path may have at most 5 characters, not 7 /files/1/line must be at least 1, not 0 ` +
			`/files/1/lin is no field here; did you mean "line"? /titel is no field here; did you mean "title"? /title is required`,
	} {
		_, f := decode(in)
		if f == nil {
			t.Errorf("%s was accepted", in)
			continue
		}
		got := f.Code
		for _, w := range f.Fields {
			got += " " + w.Pointer + " " + w.Message
		}
		if !strings.HasPrefix(got, want) || f.Kind != fault.Invalid || f.Detail == "" {
			t.Errorf("%.80s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestDecodeAccepts(t *testing.T) {
	v, f := decode(` { "title" : "\ud83d\ude00 caf\u00e9\\\"" , "count":-0, "labels":{"A":"1","a":"2"}, "before":"2026-01-31T12:00:00.5Z", "tests":[] } `)
	if f != nil {
		t.Fatal(f)
	}
	if v.Title != "😀 café\\\"" || *v.Count != 0 || len(v.Labels) != 2 || v.Before.Nanosecond() != 5e8 {
		t.Errorf("got %+v", v)
	}
	if _, f := decode(`{"title":"` + strings.Repeat("é", op.MaxText) + `"}`); f != nil {
		t.Errorf("a text of the longest length: %v", f)
	}
	if _, f := decode(`{"title":"` + strings.Repeat("é", op.MaxText+1) + `"}`); f == nil {
		t.Error("a text past the bound was accepted")
	}
	if _, f := decode(`{"title":"a","free":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`); f != nil {
		t.Errorf("the deepest nesting: %v", f)
	}
}

// TestDecodeNamesAll: every wrong field is named up to the bound, and how many
// more there are.
func TestDecodeNamesAll(t *testing.T) {
	var in strings.Builder
	for i := range 100 {
		fmt.Fprintf(&in, `"wrong%d":1,`, i)
	}
	_, f := decode(`{` + in.String() + `"title":"a"}`)
	if f == nil || len(f.Fields) != 32 || !strings.Contains(f.Detail, "and 97 more") {
		t.Fatalf("got %+v", f)
	}
	in.Reset()
	for i := range op.MaxMembers + 1 {
		fmt.Fprintf(&in, `"k%d":"",`, i)
	}
	if _, f = decode(`{"title":"a","labels":{` + strings.TrimSuffix(in.String(), ",") + `}}`); f == nil {
		t.Error("an object with too many members was accepted")
	}
}

// FuzzDecode: what is accepted is read by encoding/json just the same, and
// nothing makes the checker panic.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"title":"a"}`, `{"title":"\ud83d\ude00","count":1,"tests":["a"],"files":[{"path":"p","line":2}]}`,
		`{"title":"a","free":{"a":[1,2.5e3,null,true,"\u0000"]},"labels":{"":""}}`, `{"title":"\ud800"}`, `[`, `{"a":1,"a":2}`, `"\\"`,
		`{"title":"a","before":"2026-01-31T12:00:00Z"}`, "{\"title\":\"\xc3\"}", ` 1 `, `-0`, `{"title":"a","free":1E400}`,
	} {
		f.Add([]byte(s))
	}
	schema := op.SchemaOf[input]()
	f.Fuzz(func(t *testing.T, in []byte) {
		var got, want input
		err := op.Decode(in, schema, &got)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("not a fault of the input: %v", err)
			}
			return
		}
		d := json.NewDecoder(strings.NewReader(string(in)))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, encoding/json reads %+v", got, want)
		}
		var all map[string]any
		if err := json.Unmarshal(in, &all); err != nil {
			t.Fatal(err)
		}
		for k := range all {
			if schema.Properties[k] == nil {
				t.Fatalf("accepted the unknown field %q", k)
			}
		}
	})
}

// TestDecodeRoundTrip: what encoding/json writes of a value within the bounds
// is accepted, and read as that value.
func TestDecodeRoundTrip(t *testing.T) {
	schema := op.SchemaOf[input]()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		want := input{
			Title: rapid.StringN(1, 100, -1).Draw(t, "title"), Count: &n,
			Small: rapid.Int8().Draw(t, "small"), Share: rapid.Float64Range(0, 1).Draw(t, "share"),
			Tests:  rapid.SliceOfN(rapid.StringN(1, 8, -1), 1, 3).Draw(t, "tests"),
			Labels: rapid.MapOfN(rapid.String(), rapid.String(), 1, 4).Draw(t, "labels"),
		}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got input
		if err := op.Decode(b, schema, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %+v", b, got)
		}
	})
}
