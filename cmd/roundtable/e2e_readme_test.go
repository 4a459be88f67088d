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

// only returns the lines of a block that a test does not do in its own way.
func only(block string, own ...string) (rest string) {
	for line := range strings.Lines(block) {
		if !slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
			rest += line
		}
	}
	return rest
}

// TestReadme: the first session by hand works as it is written.
func TestReadme(t *testing.T) {
	t.Parallel()
	root := repository(t)
	writeFile(t, filepath.Join(root, "README.md"), "# The repository\n")
	sh(t, root, "git", "add", ".")
	sh(t, root, "git", "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "say what it is")
	all := blocks(t, "## A first session by hand")
	if len(all) != 6 {
		t.Fatalf("%d blocks", len(all))
	}
	x := typist{dir: root, filled: strings.NewReplacer()}
	printed := x.types(t, only(all[0], "go build", "export PATH=", "git clone ", "roundtable serve "))
	token, workspace := shown(t, `rt_TK-\S+`, printed), shown(t, `WS-[0-9A-Z]{26}`, printed)
	p := spawnIn(t, root, "--log-level", "error")
	x.env = []string{"ROUNDTABLE_TOKEN=" + token, "ROUNDTABLE_SERVER=" + p.at}
	ids := []string{"/tmp/change.patch", filepath.Join(t.TempDir(), "change.patch"), "WS-…", workspace, "http://127.0.0.1:7117", p.at}
	x.filled = strings.NewReplacer(append(ids, "rt_TK-…", token)...)
	tokens := regexp.MustCompile(`rt_TK-\S+`).FindAllString(x.types(t, only(all[1], "export PATH=", "cd /tmp/")), -1)
	if len(tokens) != 2 {
		t.Fatalf("%d tokens of the coder and the critic", len(tokens))
	}
	ids = append(ids, "coder=rt_TK-…", "coder="+tokens[0], "critic=rt_TK-…", "critic="+tokens[1], "rt_TK-…", token)
	x.filled = strings.NewReplacer(ids...)
	proposal := shown(t, `P-[0-9A-Z]{26}`, x.types(t, all[2]))
	if text := readFile(t, filepath.Join(root, "README.md")); text != "# The repository\n" {
		t.Errorf("the coder has changed it: %q", text)
	}
	last := x
	last.filled = strings.NewReplacer(append(ids, "P-…", proposal)...)
	printed = last.types(t, all[3])
	for _, want := range []string{"0 of 1 needed approvals", "+A word was missing.\n", "ok         true"} {
		if strings.Count(printed, want) != 1 {
			t.Errorf("it does not show %q:\n%s", want, printed)
		}
	}
	if text := readFile(t, filepath.Join(root, "README.md")); text != "# The repository\nA word was missing.\n" {
		t.Errorf("applied: %q", text)
	}
	if odd := sh(t, root, "git", "status", "--porcelain"); odd != " M README.md\n" {
		t.Errorf("Git sees:\n%s", odd)
	}
	t.Run("MCP", func(t *testing.T) { mcpSettings(t, x.filled.Replace(all[5]), p.at, token) })
	x.env = append(x.env, "coder="+tokens[0])
	t.Run("curl", func(t *testing.T) { curl(t, x, all[4]) })
}

// mcpSettings checks what an MCP client is told to start.
func mcpSettings(t *testing.T, block, at, token string) {
	var conf struct {
		Servers map[string]struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(block), &conf); err != nil {
		t.Fatal(err)
	}
	c := conf.Servers["roundtable"]
	if c.Command != "roundtable" || !slices.Equal(c.Args, []string{"mcp"}) || c.Env["ROUNDTABLE_SERVER"] != at || c.Env["ROUNDTABLE_TOKEN"] != token {
		t.Errorf("the configuration is %+v", c)
	}
}

// curl types the block of requests: each must be answered, the last one is a
// stream.
func curl(t *testing.T, x typist, block string) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
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
	if text := readFile(t, filepath.Join(x.dir, "README.md")); text != "# The repository\nA word was missing.\n" {
		t.Errorf("what was applied is not as it was: %q", text)
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
