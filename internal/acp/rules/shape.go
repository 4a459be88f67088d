package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"roundtable/internal/acp"
	"roundtable/internal/acp/schema"
)

// validate holds a value against its type. What has a rule of its own is left
// to that rule, and a variant that is unknown in v1 is no breach: v1 has no
// catch-all, and newer agents have more variants.
func (c *Checker) validate(f acp.Frame, t *schema.Type, raw json.RawMessage) {
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	for range 100 {
		problem, ok := errors.AsType[*schema.Problem](t.Validate(raw))
		if !ok {
			return
		}
		fixed, isNull := withList(raw, problem.Path)
		switch {
		case problem.Path == "update.sessionUpdate", problem.Path == "stopReason", problem.Path == "update.status":
			return
		case isNull && strings.Contains(problem.Text, "array"):
			c.find("null.array", Should, f, problem.Path+" is null and not an array")
			raw = fixed
		default:
			c.find("schema.valid", Must, f, problem.Error())
			return
		}
	}
}

// withList puts [] where null stands at a path.
func withList(raw json.RawMessage, path string) (json.RawMessage, bool) {
	var root any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if path == "" || d.Decode(&root) != nil {
		return nil, false
	}
	at := root
	steps := strings.Split(path, ".")
	for i, step := range steps {
		last := i == len(steps)-1
		switch v := at.(type) {
		case map[string]any:
			if e, ok := v[step]; last {
				if !ok || e != nil {
					return nil, false
				}
				v[step] = []any{}
			}
			at = v[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(v) {
				return nil, false
			}
			at = v[n]
		default:
			return nil, false
		}
	}
	out, err := acp.Marshal(root)
	return out, err == nil
}

// rootFields reports properties at the root of a message that nobody defined.
func (c *Checker) rootFields(f acp.Frame, m acp.Message) {
	for _, name := range slices.Sorted(slices.Values(m.Extra)) {
		c.find("root.fields", Should, f, fmt.Sprintf("unknown property %q", name))
	}
}

// bodyFields does the same for params and results.
func (c *Checker) bodyFields(f acp.Frame, t *schema.Type, body map[string]json.RawMessage) {
	for name, value := range body {
		switch {
		case !t.Knows(name) && name != "_meta":
			c.find("root.fields", Should, f, fmt.Sprintf("unknown property %q; _meta is the place for custom ones", name))
		case name == "_meta" && !bytes.HasPrefix(value, []byte("{")) && string(value) != "null":
			c.find("root.fields", Should, f, "_meta is no object")
		}
	}
}
