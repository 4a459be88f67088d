package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/op"
)

// maxFile bounds what is read for one flag, in bytes: the largest patch that
// the service takes.
const maxFile = 32 << 20

// An input is a parsed command line.
type input struct {
	fields    map[string]json.RawMessage
	body      []byte // a patch, as it stands
	key       string
	workspace string
	after     int64
	out       string // file that the answer goes to; "" is standard output
	json      bool
	help      bool
}

// own are the flags of every command. A field of such a name comes first.
var own = map[string]string{
	"json": "print the answer as JSON", "help": "show this",
	"workspace": "id of the workspace; needed only where you see several",
	"key":       "idempotency key: repeat a command under the same and it is done once",
	"out":       "write the answer to this file, which must not be there yet",
	"after":     "wait until what a command did at this log position is shown",
}

// parse reads the arguments after a command's words.
func (env Env) parse(c command, args []string) (in input, err error) {
	in.fields = map[string]json.RawMessage{}
	given := map[string][]string{}
	var loose []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			loose = append(loose, args[i+1:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			loose = append(loose, arg)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name == "h" {
			name = "help"
		}
		name = strings.ReplaceAll(name, "-", "_")
		isSwitch, err := env.switched(c.o, name)
		if err != nil {
			return in, err
		}
		switch {
		case hasValue:
		case isSwitch:
			value = "true"
		case i+1 == len(args):
			return in, fmt.Errorf("%s needs a value", flagOf(name))
		default:
			i++
			value = args[i]
		}
		given[name] = append(given[name], value)
	}
	if err := place(c.o, loose, given); err != nil {
		return in, err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := env.take(c.o, name, given[name], &in); err != nil {
			return in, err
		}
	}
	if err := prove(c.o, &in); err != nil {
		return in, err
	}
	if in.help {
		return in, nil
	}
	return in, missing(c.o, in)
}

// prove tells the digest and length of a patch beside it, where the op takes
// them and the caller does not give them: what is cut short on its way is
// refused then.
func prove(o op.Op, in *input) error {
	if in.body == nil {
		return nil
	}
	sum := sha256.Sum256(in.body)
	for name, v := range map[string]any{"patch_sha256": hex.EncodeToString(sum[:]), "patch_bytes": len(in.body)} {
		if o.In.Properties[name] == nil || in.fields[name] != nil {
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		in.fields[name] = raw
	}
	return nil
}

// switched reports whether a flag stands without a value; an error says that
// there is no such flag.
func (env Env) switched(o op.Op, name string) (bool, error) {
	if p := o.In.Properties[name]; p != nil {
		return p.Type == "boolean", nil
	}
	switch {
	case name == "json" || name == "help":
		return true, nil
	case name == "out", name == "key" && o.Writes(), name == "after" && !o.Writes(), (name == "workspace" || name == op.WorkspaceParam) && o.InWorkspace():
		return false, nil
	}
	return false, fmt.Errorf("there is no flag %s", flagOf(plain(name)))
}

// place gives arguments without a flag to the ids of the path, and then to
// the fields that must be there.
func place(o op.Op, loose []string, given map[string][]string) error {
	for _, name := range positional(o) {
		if len(loose) == 0 {
			break
		}
		if given[name] == nil {
			given[name], loose = loose[:1], loose[1:]
		}
	}
	if len(loose) > 0 {
		return fmt.Errorf("%s is too much", quote(loose[0]))
	}
	return nil
}

// positional returns the fields that need no flag, in order.
func positional(o op.Op) []string {
	var names []string
	for _, p := range o.Params() {
		if p != op.WorkspaceParam {
			names = append(names, p)
		}
	}
	for _, r := range order(o.In) {
		if p := o.In.Properties[r]; slices.Contains(o.In.Required, r) && !slices.Contains(names, r) && (p.Type == "string" || p.Type == "integer") {
			names = append(names, r)
		}
	}
	return names
}

// order returns the fields of an input as they were declared.
func order(s *jsonschema.Schema) []string {
	names := slices.Clone(s.PropertyOrder)
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// take fills in from one flag.
func (env Env) take(o op.Op, name string, values []string, in *input) (err error) {
	p := o.In.Properties[name]
	if len(values) > 1 && (p == nil || p.Type != "array") {
		return fmt.Errorf("%s is given more than once", flagOf(name))
	}
	v := values[0]
	switch {
	case p != nil && name == "patch":
		in.body, err = env.file(strings.TrimPrefix(v, "@"))
		if len(in.body) == 0 && err == nil {
			err = errors.New("--patch: the file is empty")
		}
	case p != nil && p.Type == "array":
		in.fields[name], err = env.array(name, p, values)
	case p != nil:
		if v, err = env.content(name, p, v); err == nil {
			in.fields[name], err = value(name, p, v)
		}
	case name == "json":
		in.json, err = strconv.ParseBool(v)
	case name == "help":
		in.help, err = strconv.ParseBool(v)
	case name == "key":
		if in.key = v; strings.TrimSpace(v) == "" {
			err = errors.New("--key must not be blank")
		}
	case name == "out":
		if in.out = v; v == "" {
			err = errors.New("--out needs the name of a file")
		}
	case name == "after":
		if in.after, err = strconv.ParseInt(v, 10, 64); err != nil || in.after < 0 {
			err = errors.New("--after must be a log position: a whole number from 0")
		}
	default:
		in.workspace = v
	}
	return err
}

func (env Env) array(name string, p *jsonschema.Schema, values []string) (json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(values))
	for _, v := range values {
		v, err := env.content(name, p.Items, v)
		if err != nil {
			return nil, err
		}
		if list, ok := objects(p.Items, v); ok {
			items = append(items, list...)
			continue
		}
		item, err := value(name, p.Items, v)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return json.Marshal(items)
}

// content reads a flag's text from a file, where it names one with @: long
// texts, objects and lists may.
func (env Env) content(name string, p *jsonschema.Schema, v string) (string, error) {
	path, fromFile := strings.CutPrefix(v, "@")
	if !fromFile || p != nil && p.Type == "string" && !strings.HasSuffix(name, "_md") {
		return v, nil
	}
	b, err := env.file(path)
	return string(b), err
}

// value writes a flag's text as JSON of its type.
func value(name string, p *jsonschema.Schema, v string) (json.RawMessage, error) {
	typ := ""
	if p != nil {
		typ = p.Type
	}
	switch typ {
	case "string":
		return json.Marshal(v)
	case "integer":
		if _, err := strconv.ParseInt(v, 10, 64); err != nil {
			return nil, fmt.Errorf("%s must be a whole number, not %s", flagOf(name), quote(v))
		}
	case "number":
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return nil, fmt.Errorf("%s must be a number, not %s", flagOf(name), quote(v))
		}
	case "boolean":
		b, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("%s must be true or false, not %s", flagOf(name), quote(v))
		}
		v = strconv.FormatBool(b)
	}
	short := ""
	if a, b, ok := pair(p); ok {
		if first, second, ok := strings.Cut(v, ":"); ok && !strings.ContainsAny(v, "{}[]\" \t\n") {
			return json.Marshal(map[string]string{a: first, b: second})
		}
		short = strings.ToUpper(a+":"+b) + ", "
	}
	if !json.Valid([]byte(v)) {
		return nil, fmt.Errorf("%s must be %sJSON, or @ and the name of a file of JSON", flagOf(name), short)
	}
	return json.RawMessage(v), nil
}

// objects reads a whole list given to one flag of objects; ok is false of what
// is none.
func objects(item *jsonschema.Schema, v string) (list []json.RawMessage, ok bool) {
	if item == nil || item.Type != "object" || json.Unmarshal([]byte(v), &list) != nil {
		return nil, false
	}
	return list, list != nil
}

// pair names the fields of an object of exactly two strings, which may be
// written A:B.
func pair(p *jsonschema.Schema) (a, b string, ok bool) {
	if p == nil || p.Type != "object" || len(p.Properties) != 2 || len(p.Required) != 2 {
		return "", "", false
	}
	names := order(p)
	for _, n := range names {
		if p.Properties[n].Type != "string" {
			return "", "", false
		}
	}
	return names[0], names[1], true
}

// file reads a file, or with the name - what is piped in.
func (env Env) file(path string) ([]byte, error) {
	if path != "-" {
		b, err := env.ReadFile(path)
		if err == nil && len(b) > maxFile {
			err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
		}
		return b, err
	}
	if env.Stdin == nil {
		return nil, errors.New("nothing is piped in")
	}
	b, err := io.ReadAll(io.LimitReader(env.Stdin, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("what is piped in is larger than %d bytes", maxFile)
	}
	return b, err
}

// missing names the fields that must be there and are not.
func missing(o op.Op, in input) error {
	var names []string
	for _, name := range positionalOrRequired(o) {
		if in.fields[name] == nil && !(name == "patch" && in.body != nil) {
			names = append(names, flagOf(name))
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("it needs %s", strings.Join(names, ", "))
	}
	return nil
}

func positionalOrRequired(o op.Op) []string {
	names := positional(o)
	for _, r := range order(o.In) {
		if slices.Contains(o.In.Required, r) && !slices.Contains(names, r) {
			names = append(names, r)
		}
	}
	return names
}

// flagOf is a field as a flag.
func flagOf(field string) string { return "--" + strings.ReplaceAll(field, "_", "-") }
