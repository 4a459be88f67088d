package main

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// blocks returns the fenced blocks of a part of README.md, from a heading to
// the next one of the same level.
func blocks(t *testing.T, heading string) (all []string) {
	t.Helper()
	_, part, ok := strings.Cut(readFile(t, "../../README.md"), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("README has no %s", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	part, _, _ = strings.Cut(part, "\n"+level+" ")
	for i, b := range strings.Split(part, "```") {
		if i%2 == 1 {
			_, b, _ = strings.Cut(b, "\n")
			all = append(all, b)
		}
	}
	return all
}

// A reader of README types what stands there, with the ids that were shown.
type typist struct {
	dir    string
	env    []string
	filled *strings.Replacer
}

func (x typist) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-e", "-c", x.filled.Replace(script))
	cmd.Dir, cmd.Env = x.dir, append(cmd.Environ(), x.env...)
	return cmd
}

// types runs a script, which must succeed, and returns what it printed.
func (x typist) types(t *testing.T, script string) string {
	t.Helper()
	out, err := x.command(script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v: %s", x.filled.Replace(script), err, out)
	}
	return string(out)
}

// shown finds an id in what was printed.
func shown(t *testing.T, form, printed string) string {
	t.Helper()
	id := regexp.MustCompile(form).FindString(printed)
	if id == "" {
		t.Fatalf("there is no %s in:\n%s", form, printed)
	}
	return id
}

// TestReadme: the first session by hand works as it is written.
func TestReadme(t *testing.T) {
	t.Parallel()
	root := repository(t)
	writeFile(t, filepath.Join(root, "README.md"), "# The repository\n")
	sh(t, root, "git", "add", ".")
	sh(t, root, "git", "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "say what it is")
	all := blocks(t, "## A first session by hand")
	if len(all) != 4 {
		t.Fatalf("%d blocks", len(all))
	}
	var begin []string // what a test does in its own way is left out
	for line := range strings.Lines(all[0]) {
		own := func(prefix string) bool { return strings.HasPrefix(line, prefix) }
		if !slices.ContainsFunc([]string{"go build", "export ", "cd /path", "roundtable serve "}, own) {
			begin = append(begin, line)
		}
	}
	x := typist{dir: root, filled: strings.NewReplacer()}
	printed := x.types(t, strings.Join(begin, ""))
	token, workspace := shown(t, `rt_TK-\S+`, printed), shown(t, `WS-[0-9A-Z]{26}`, printed)
	p := spawnIn(t, root, "--log-level", "error")
	x.env = []string{"ROUNDTABLE_TOKEN=" + token, "ROUNDTABLE_SERVER=" + p.at}
	x.filled = strings.NewReplacer("rt_TK-…", token, "WS-…", workspace, "http://127.0.0.1:7117", p.at)
	if printed = x.types(t, all[1]); strings.Count(printed, "rt_TK-") != 1 {
		t.Errorf("no token of the coder:\n%s", printed)
	}
	t.Run("curl", func(t *testing.T) { curl(t, x, all[2]) })
	t.Run("MCP", func(t *testing.T) {
		var conf struct {
			Servers map[string]struct {
				Command string            `json:"command"`
				Args    []string          `json:"args"`
				Env     map[string]string `json:"env"`
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(x.filled.Replace(all[3])), &conf); err != nil {
			t.Fatal(err)
		}
		c := conf.Servers["roundtable"]
		if c.Command != "roundtable" || !slices.Equal(c.Args, []string{"mcp"}) || c.Env["ROUNDTABLE_SERVER"] != p.at || c.Env["ROUNDTABLE_TOKEN"] != token {
			t.Errorf("the configuration is %+v", c)
		}
	})
}

// curl types the block of requests: each must be answered, the last one is a
// stream.
func curl(t *testing.T, x typist, block string) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	if err := sed(x.dir, "README.md"); err != nil {
		t.Fatal(err)
	}
	at := strings.Index(block, "curl -H \"$auth\" $api/proposals/P-…")
	stream := strings.Index(block, "curl -N")
	vars := block[:strings.Index(block, "curl ")]
	if at < 0 || stream < at {
		t.Fatalf("the block is another:\n%s", block)
	}
	printed := x.types(t, strings.ReplaceAll(block[:at], "curl ", "curl --fail-with-body --silent --show-error "))
	proposal := shown(t, `P-[0-9A-Z]{26}`, printed)
	gates := x.types(t, strings.ReplaceAll(vars+strings.Replace(block[at:stream], "P-…", proposal, 1), "curl ", "curl --fail-with-body --silent "))
	if !strings.Contains(gates, `"gate":"claims","status":"passed"`) {
		t.Errorf("gates: %s", gates)
	}
	live := x.command(vars + "exec " + strings.Replace(block[stream:], "curl ", "curl --silent ", 1))
	out, err := live.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("the stream ended")
		}
		if strings.Contains(lines.Text(), proposal) {
			break
		}
	}
	if err := live.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := live.Wait(); err == nil {
		t.Error("the stream had ended by itself")
	}
}

// sed changes a file as somebody at work would.
func sed(dir, name string) error {
	cmd := exec.Command("sed", "-i", "s/The repository/Our repository/", name)
	cmd.Dir = dir
	return cmd.Run()
}
