package main

import (
	"fmt"
	"io"
	"path/filepath"
	"reflect"

	"github.com/alecthomas/kong"

	"roundtable/internal/fault"
	"roundtable/internal/redact"
)

// A setting is one with the value that is in effect, and where it comes
// from: the environment, config.yaml or the default.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// hidden stands for the value of a secret.
const hidden = "(set, not shown)"

// effective returns the settings that `serve --data data` would have, and what
// the environment says besides.
func effective(data string, env func(string) string) (all []setting, flags serveFlags, err error) {
	args := []string{"serve", "--data", data}
	file, err := configFile(args, env)
	if err != nil {
		return nil, flags, err
	}
	resolver, err := settings(args, env)
	if err != nil {
		return nil, flags, err
	}
	var r root
	parser, err := kong.New(&r, kong.Name("roundtable"), kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}), kong.Resolvers(resolver))
	if err != nil {
		return nil, flags, err
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, flags, fault.Errorf(fault.Invalid, "invalid_config", "%v", err)
	}
	v := reflect.ValueOf(r.Serve.serveFlags)
	for i, name := range serverSettings() {
		s := setting{Name: name, Value: redact.Text(fmt.Sprint(v.Field(i).Interface())), From: "default"}
		if _, ok := file[name]; ok {
			s.From = filepath.Join(data, "config.yaml")
		}
		if variable := "ROUNDTABLE_" + upper(name); env(variable) != "" {
			s.From = variable
		}
		all = append(all, s)
	}
	for _, variable := range []string{"ROUNDTABLE_DATA", "ROUNDTABLE_SERVER", "ROUNDTABLE_WORKSPACE", "ROUNDTABLE_TOKEN"} {
		if value := env(variable); value != "" {
			s := setting{Name: variable, Value: redact.Text(value), From: "environment"}
			if variable == "ROUNDTABLE_TOKEN" {
				s.Value = hidden
			}
			all = append(all, s)
		}
	}
	return all, r.Serve.serveFlags, nil
}
