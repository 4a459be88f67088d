package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// bodyTime bounds how long a client may take to send a body.
const bodyTime = 2 * time.Minute

// An unsupported body is answered 415, which is no kind's status.
type unsupported struct {
	fault *fault.Error
	takes string
}

func (u *unsupported) Error() string { return u.fault.Detail }

// input returns o's input: of a read the query, of a write the JSON body or
// what stands beside a raw patch, and in both the parameters of the path.
func (s *server) input(w http.ResponseWriter, r *http.Request, o op.Op, c *op.Call) ([]byte, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "malformed_query", "the query cannot be read: %v", err)
	}
	var in []byte
	if !o.Writes() {
		if r.ContentLength != 0 {
			return nil, fault.Errorf(fault.Invalid, "unexpected_body", "a %s takes no body: its input is the query", r.Method)
		}
		if err := takeAfter(o, query, c); err != nil {
			return nil, err
		}
		in, err = fromQuery(o.In, query)
	} else {
		in, err = s.body(w, r, o, query, c)
	}
	if err != nil {
		return nil, err
	}
	return withParams(in, r, o)
}

// takeAfter takes the position a read waits for out of its query, unless the
// read has a field of that name itself.
func takeAfter(o op.Op, query url.Values, c *op.Call) error {
	if o.In.Properties["after"] != nil || !query.Has("after") {
		return nil
	}
	n, err := strconv.ParseInt(query.Get("after"), 10, 64)
	if err != nil || n < 0 || len(query["after"]) > 1 {
		return fault.Errorf(fault.Invalid, "invalid_field", "after must be the position that a command was answered with").
			At("/after", "must be a position")
	}
	c.After = n
	query.Del("after")
	return nil
}

// body reads the body of a write.
func (s *server) body(w http.ResponseWriter, r *http.Request, o op.Op, query url.Values, c *op.Call) ([]byte, error) {
	media, max, err := s.media(r, o)
	if err != nil {
		return nil, err
	}
	if media != patchMedia && len(query) > 0 {
		name := slices.Sorted(maps.Keys(query))[0]
		return nil, fault.Errorf(fault.Invalid, "unknown_field", "this call takes no query: its input is the body").
			At("/"+name, "is no query parameter of this call")
	}
	b, err := s.read(w, r, max)
	if err != nil {
		return nil, err
	}
	if media != patchMedia {
		return b, nil
	}
	for _, name := range patchFields {
		if query.Has(name) {
			return nil, fault.Errorf(fault.Invalid, "unknown_field", "the patch is the body").At("/"+name, "stands in the body already")
		}
	}
	c.Body = b
	return fromQuery(o.In, query)
}

const patchMedia = "text/x-patch"

// patchFields are what a body of patchMedia takes the place of.
var patchFields = []string{"patch", "patch_base64"}

// media returns the kind of body and how large it may be.
func (s *server) media(r *http.Request, o op.Op) (media string, max int64, err error) {
	header := r.Header.Get("Content-Type")
	if header == "" && r.ContentLength == 0 {
		return "application/json", s.MaxBody, nil
	}
	media, params, err := mime.ParseMediaType(header)
	takesPatch := o.In.Properties["patch"] != nil
	switch {
	case err == nil && media == patchMedia && takesPatch:
		return media, s.MaxPatch, nil
	case err == nil && media == "application/json" && (params["charset"] == "" || strings.EqualFold(params["charset"], "utf-8")):
		return media, s.MaxBody, nil
	}
	takes := "application/json"
	if takesPatch {
		takes += ", " + patchMedia
	}
	return "", 0, &unsupported{takes: takes, fault: fault.Errorf(fault.Invalid, "unsupported_media_type", "the body must be %s and its header Content-Type say so", takes)}
}

// read reads a body of at most max bytes.
func (s *server) read(w http.ResponseWriter, r *http.Request, max int64) ([]byte, error) {
	if r.ContentLength > max {
		return nil, tooLarge(max)
	}
	ctl := http.NewResponseController(w)
	if err := ctl.SetReadDeadline(s.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, max))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(max)
		}
		return nil, fault.Errorf(fault.Invalid, "body_incomplete", "the body did not arrive whole")
	}
	if err := ctl.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return b, nil
}

func tooLarge(max int64) error {
	return fault.Errorf(fault.TooLarge, "body_too_large", "the body may have at most %d bytes", max).With("max_bytes", max)
}

// fromQuery writes a query as the JSON object that schema asks for. What does
// not fit its type goes in as a string: then the op says what is wrong.
func fromQuery(schema *jsonschema.Schema, query url.Values) ([]byte, error) {
	in := map[string]json.RawMessage{}
	for name, values := range query {
		if !utf8.ValidString(name) || !utf8.ValidString(strings.Join(values, "")) {
			return nil, fault.Errorf(fault.Invalid, "malformed_query", "the query is not UTF-8")
		}
		p := schema.Properties[name]
		switch {
		case p != nil && p.Type == "array":
			in[name] = listOf(p, values)
		case len(values) > 1:
			return nil, fault.Errorf(fault.Invalid, "invalid_field", "the query has %.40q more than once", name).
				At("/"+name, "stands more than once")
		case p == nil:
			in[name] = quote(values[0])
		default:
			in[name] = convert(p.Type, values[0])
		}
	}
	return json.Marshal(in)
}

// listOf makes a list of a parameter that stands several times, or once with
// commas in it or as a JSON list.
func listOf(p *jsonschema.Schema, values []string) json.RawMessage {
	if len(values) == 1 {
		if v := values[0]; strings.HasPrefix(v, "[") && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
		values = strings.Split(values[0], ",")
	}
	var b bytes.Buffer
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(convert(p.Items.Type, v))
	}
	return json.RawMessage("[" + b.String() + "]")
}

// convert writes text as JSON of a type, if it can be, else as a string.
func convert(typ, text string) json.RawMessage {
	raw := json.RawMessage(text)
	if typ == "string" || text == "" || !json.Valid(raw) {
		return quote(text)
	}
	first := text[0]
	number := first == '-' || '0' <= first && first <= '9'
	switch {
	case (typ == "integer" || typ == "number") && number,
		typ == "boolean" && (text == "true" || text == "false"),
		typ == "object" && first == '{':
		return raw
	}
	return quote(text)
}

// quote writes text as a JSON string.
func quote(text string) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // no string is refused
	}
	return b
}

func unescape(v string) (string, error) { return url.PathUnescape(v) }

// withParams adds the parameters of the path to an input. The input may not
// have them itself: what it said would be believed to have an effect.
//
// They are added before the last brace and not after the first, so that
// positions in messages about the body are those of the body. What is no
// object stays as it is, for the op to refuse.
func withParams(in []byte, r *http.Request, o op.Op) ([]byte, error) {
	var add []byte
	for _, name := range o.Params() {
		if name == op.WorkspaceParam {
			continue
		}
		v := param(r, name)
		if !utf8.ValidString(v) {
			return nil, fault.Errorf(fault.Invalid, "malformed_query", "the path is not UTF-8")
		}
		if has(in, name) {
			return nil, fault.Errorf(fault.Invalid, "invalid_field", "%s stands in the path and may not stand in the input too", name).
				At("/"+name, "stands in the path already")
		}
		add = append(append(append(add, ','), quote(name)...), ':')
		add = append(add, convert(o.In.Properties[name].Type, v)...)
	}
	return splice(in, add), nil
}

// splice puts members, each after a comma, at the end of the object in.
func splice(in, members []byte) []byte {
	body := bytes.TrimSpace(in)
	if len(body) == 0 {
		body = []byte("{}")
	}
	if len(members) == 0 || body[0] != '{' || body[len(body)-1] != '}' || len(body) < 2 {
		return in
	}
	end := bytes.TrimRight(in, " \t\r\n")
	if len(end) == 0 {
		end = body
	}
	end = end[:len(end)-1]
	if inner := bytes.TrimSpace(end); len(inner) == 1 {
		members = members[1:]
	}
	return append(append(slices.Clip(end), members...), '}')
}

// has reports whether the object in has a member called name.
func has(in []byte, name string) bool {
	if !bytes.Contains(in, []byte(`"`+name+`"`)) && !bytes.Contains(in, []byte(`\u`)) {
		return false
	}
	var members map[string]json.RawMessage
	return json.Unmarshal(in, &members) == nil && members[name] != nil
}
