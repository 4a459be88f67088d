package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestServerSettings: every setting is a flag of serve by the same name.
func TestServerSettings(t *testing.T) {
	var r root
	k, err := kong.New(&r)
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, n := range k.Model.Children {
		if n.Name == "serve" {
			for _, f := range n.Flags {
				flags[f.Name] = true
			}
		}
	}
	for _, s := range serverSettings() {
		if !flags[s] {
			t.Errorf("%s is no flag of serve", s)
		}
	}
}

// TestSettings: the command line wins over the environment, and that over the
// file; a key that is none is refused with its place.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	for _, x := range []struct {
		file, env string
		args      []string
		want, err string
	}{
		{want: "127.0.0.1:7117"},
		{file: "addr: 127.0.0.1:1\n", want: "127.0.0.1:1"},
		{file: "addr: 127.0.0.1:1\n", env: "127.0.0.1:2", want: "127.0.0.1:2"},
		{file: "addr: 127.0.0.1:1\n", env: "127.0.0.1:2", args: []string{"--addr", "127.0.0.1:3"}, want: "127.0.0.1:3"},
		{file: "rate: 5\nadress: x\n", err: ":2:1: adress is no setting"},
		{file: "addr: x\naddr: y\n", err: ":2:1: addr stands twice"},
		{file: "- addr\n", err: "one setting a line"},
		{file: "addr: {a: b}\n", err: ":1:7: addr is a text"},
		{file: "addr: [\n", err: "config.yaml"},
		{file: "", want: "127.0.0.1:7117"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(x.file), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"serve", "--data", dir}, x.args...)
		env := func(name string) string { return map[string]string{"ROUNDTABLE_ADDR": x.env}[name] }
		resolver, err := settings(args, env)
		if err != nil || x.err != "" {
			if err == nil || x.err == "" || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%q: %v, want %q", x.file, err, x.err)
			}
			continue
		}
		var r root
		k, err := kong.New(&r, kong.Resolvers(resolver))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Parse(args); err != nil {
			t.Fatal(err)
		}
		if r.Serve.Addr != x.want {
			t.Errorf("%+v: addr is %s", x, r.Serve.Addr)
		}
	}
}
