package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"roundtable/internal/fault"
)

// settings resolves --some-flag from ROUNDTABLE_SOME_FLAG, and a setting of
// the server also from the key some_flag of config.yaml in the data folder.
// A flag on the command line wins over both, the environment over the file.
func settings(args []string, env func(string) string) (kong.Resolver, error) {
	file, err := configFile(args, env)
	if err != nil {
		return nil, err
	}
	return kong.ResolverFunc(func(_ *kong.Context, parent *kong.Path, f *kong.Flag) (any, error) {
		if v := env("ROUNDTABLE_" + upper(f.Name)); v != "" && f.Name != "help" {
			return v, nil
		}
		if v, ok := file[f.Name]; ok && parent.Node() != nil && parent.Node().Name == "serve" {
			return v, nil
		}
		return nil, nil
	}), nil
}

func upper(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// configFile reads config.yaml of the data folder that the arguments of serve
// name; nothing for another command, or if there is none.
func configFile(args []string, env func(string) string) (map[string]any, error) {
	if len(args) == 0 || args[0] != "serve" {
		return nil, nil
	}
	data := env("ROUNDTABLE_DATA")
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--data="); ok {
			data = v
		} else if a == "--data" && i+1 < len(args) {
			data = args[i+1]
		}
	}
	if err := ownData(context.Background(), dataFolder(data)); err != nil {
		return nil, err
	}
	path := filepath.Join(dataFolder(data), "config.yaml")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return parseConfig(path, b)
}

// parseConfig reads settings of serve; a key that is none is an error that
// says where it stands.
func parseConfig(path string, b []byte) (map[string]any, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fault.Errorf(fault.Invalid, "invalid_config", "%s: %v", path, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	root := doc.Content[0]
	bad := func(n *yaml.Node, format string, args ...any) error {
		return fault.Errorf(fault.Invalid, "invalid_config", "%s:%d:%d: %s", path, n.Line, n.Column, fmt.Sprintf(format, args...))
	}
	if root.Kind != yaml.MappingNode {
		return nil, bad(root, "write one setting a line, such as addr: 127.0.0.1:7117")
	}
	known, out := serverSettings(), map[string]any{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		flag := strings.ReplaceAll(key.Value, "_", "-")
		_, twice := out[flag]
		switch {
		case !slices.Contains(known, flag) || strings.Contains(key.Value, "-"):
			return nil, bad(key, "%s is no setting; the settings are %s", key.Value, strings.ReplaceAll(strings.Join(known, ", "), "-", "_"))
		case twice:
			return nil, bad(key, "%s stands twice", key.Value)
		case value.Kind == yaml.ScalarNode:
			out[flag] = value.Value
		case value.Kind == yaml.SequenceNode:
			var all []string
			if err := value.Decode(&all); err != nil {
				return nil, bad(value, "%s is a list of texts", key.Value)
			}
			out[flag] = strings.Join(all, ",")
		default:
			return nil, bad(value, "%s is a text, a number or a list", key.Value)
		}
	}
	return out, nil
}

// serverSettings are the flags of serve that may stand in config.yaml.
func serverSettings() (names []string) {
	t := reflect.TypeFor[serveFlags]()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("name")
		if name == "" {
			name = kebab(f.Name)
		}
		names = append(names, name)
	}
	return names
}

// kebab spells a Go name as kong spells its flag.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' && !('A' <= name[i-1] && name[i-1] <= 'Z') {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
