package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type demoCmd struct {
	Repo  string `help:"Work on a clone of this repository: adds one file." type:"path"`
	Serve bool   `help:"Go on serving when the play is over."`
	Keep  bool   `help:"Keep the folder it worked in."`
}

// Run plays the main job and fails if any step differs from what it should be.
func (c *demoCmd) Run(ctx context.Context, t terminal) (err error) {
	dir, err := os.MkdirTemp("", "roundtable-demo-")
	if err != nil {
		return err
	}
	if !c.Keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	p, err := c.scene(ctx, filepath.Join(dir, "repository"))
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "A repository in %s, served by this process. Two agents speak MCP, a person speaks HTTP.\n", p.root)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, at, err := c.start(ctx, t, p, filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	err = p.play(ctx, t.out, at)
	if err == nil && c.Serve {
		fmt.Fprintf(t.out, "\nserving on %s until interrupted; the person's token is\n%s\n", at, p.personToken)
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, <-ended)
}

// start serves the repository in this process, from a data folder of its own.
func (c *demoCmd) start(ctx context.Context, t terminal, p *play, data string) (ended chan error, at string, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, "", err
	}
	lg := logger(t, "error")
	a, err := open(ctx, data, lg)
	if err != nil {
		return nil, "", err
	}
	if p.workspace, p.adminToken, err = a.bootstrap(ctx, p.root, "admin"); err != nil {
		return nil, "", errors.Join(err, a.Close())
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", errors.Join(err, a.Close())
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { // ends with ctx; whoever started it waits for ended
		err := a.serve(ctx, ln, serveFlags{TestSlots: 2, AllowUnsandboxed: true, Heartbeat: 15 * time.Second}, terminal{out: io.Discard, err: io.Discard, ready: ready})
		ended <- errors.Join(err, a.Close())
	}()
	select {
	case at = <-ready:
		return ended, at, nil
	case err := <-ended:
		return nil, "", fmt.Errorf("the service did not start: %w", err)
	}
}

// scene makes the repository: from the fixture, or as a clone.
func (c *demoCmd) scene(ctx context.Context, root string) (*play, error) {
	p := &play{root: root}
	if c.Repo != "" {
		p.change = addition
		p.original = c.Repo
		return p, git(ctx, ".", "clone", "--quiet", "--no-hardlinks", c.Repo, root)
	}
	p.change = correction
	for name, text := range fixture {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return nil, err
		}
	}
	return p, errors.Join(git(ctx, root, "init", "--quiet", "--initial-branch=main"), git(ctx, root, "add", "."),
		git(ctx, root, "-c", "user.name=Demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m", "greet: first version"))
}

func git(ctx context.Context, dir string, args ...string) error {
	_, err := gitOutput(ctx, dir, args...)
	return err
}

func gitOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// A change is what the play proposes.
type change struct {
	title, summary string
	file           string // that is claimed and changed
	wrong, right   string // a patch that does not fit, and one that does
	test           string // that must pass on the candidate tree
	risk           string
}

var fixture = map[string]string{
	"go.mod": "module example.org/greet\n\ngo 1.21\n",
	"greet.go": `// Package greet says hello.
package greet

// Hello greets one person by name.
func Hello(name string) string {
	return "Hello, " + name
}
`,
	"greet_test.go": `package greet

import "testing"

func TestHello(t *testing.T) {
	if got := Hello("Ada"); got[:5] != "Hello" {
		t.Errorf("got %q", got)
	}
}
`,
	"README.md": "# greet\n\nA package that says hello.\n",
}

var correction = change{
	title:   "Greet somebody without a name",
	summary: "An empty name gives a greeting that ends in a comma. Greet the world instead.",
	file:    "greet.go",
	risk:    "high",
	test:    "go test ./...",
	wrong: `diff --git a/greet.go b/greet.go
--- a/greet.go
+++ b/greet.go
@@ -4,4 +4,7 @@
 // Hello greets a person by name.
 func Hello(name string) string {
+	if name == "" {
+		name = "world"
+	}
 	return "Hello, " + name
 }
`,
	right: `diff --git a/greet.go b/greet.go
--- a/greet.go
+++ b/greet.go
@@ -4,4 +4,7 @@
 // Hello greets one person by name.
 func Hello(name string) string {
+	if name == "" {
+		name = "world"
+	}
 	return "Hello, " + name
 }
`,
}

const added = "ROUNDTABLE-DEMO.md"

var addition = change{
	title:   "Say that this repository was shown the round table",
	summary: "Adds one file and changes nothing else.",
	file:    added,
	risk:    "high",
	test:    "git hash-object " + added,
	wrong:   "diff --git a/" + added + " b/" + added + "\n--- a/" + added + "\n+++ b/" + added + "\n@@ -1 +1,2 @@\n # A file that is not there\n+A line more.\n",
	right: "diff --git a/" + added + " b/" + added + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + added +
		"\n@@ -0,0 +1,3 @@\n+# Round table\n+\n+This file was proposed, tested, reviewed and applied.\n",
}
