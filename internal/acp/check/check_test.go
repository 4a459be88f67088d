package check_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"roundtable/internal/acp/check"
	"roundtable/internal/acp/proc"
)

// built is testy, built once: without the race detector, for its own tests have
// that, and it is started hundreds of times here.
var built string

func TestMain(m *testing.M) { os.Exit(withTesty(m)) }

func withTesty(m *testing.M) int {
	dir, err := os.MkdirTemp("", "testy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	built = filepath.Join(dir, "testy")
	if out, err := exec.Command("go", "build", "-o", built, "roundtable/cmd/testy").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	return m.Run()
}

func options(_ *testing.T, version int, args ...string) check.Options {
	return check.Options{
		Command: proc.Command{Argv: append([]string{built}, args...)},
		Version: version, CancelPrompt: "wait_for_cancel", AuthMethod: "testy-agent-auth", Dir: "/",
		Limit: 20 * time.Second, Quiet: 30 * time.Millisecond, Parallel: 4,
	}
}

func still() time.Duration { return 0 }

// TestTestyPassesWhole: no row fails, in any version and draft.
func TestTestyPassesWhole(t *testing.T) {
	for _, x := range []struct {
		version int
		draft   string
		pass    int // at least
	}{{1, "alpha.3", 50}, {2, "alpha.3", 60}, {2, "next", 55}} {
		o := options(t, x.version, "--draft="+x.draft)
		o.Next = x.draft == "next"
		r, err := check.Run(t.Context(), o, still)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if row.Status == check.Fail || row.Status == check.NotTested || row.Status == check.Skip && row.Tier == check.Mandatory && !o.Next {
				t.Errorf("v%d %s: %+v", x.version, x.draft, row)
			}
		}
		if !r.Conformant || r.Agent != "testy 0.0.0" {
			t.Errorf("v%d %s: %q %t %s", x.version, x.draft, r.Agent, r.Conformant, r.Reason)
		}
		if n := r.Count("", check.Pass); n < x.pass {
			t.Errorf("v%d %s: only %d rows pass", x.version, x.draft, n)
		}
	}
}

// TestFaultsAreFound: a row that cannot fail checks nothing.
func TestFaultsAreFound(t *testing.T) {
	for _, x := range []struct {
		version      int
		fault, fails string
		conformant   bool
	}{
		{1, "noise", "ACP-TRANSPORT-001", false},
		{1, "bad-utf8", "ACP-TRANSPORT-002", false},
		{1, "string-id", "ACP-INIT-001", false},
		{1, "version=65535", "ACP-INIT-003", false},
		{1, "null-arrays", "ACP-LIST-002", false},
		{1, "malformed-optional", "ACP-SCHEMA-001", false},
		{1, "unknown-stop", "ACP-PROMPT-001", false},
		{1, "unknown-session", "ACP-PROMPT-002", false},
		{1, "cancel-error", "ACP-CANCEL-001", false},
		{1, "cancel-end-turn", "ACP-CANCEL-001", false},
		{1, "late-update", "ACP-CANCEL-002", false},
		{1, "late-replay", "ACP-LOAD-001", false},
		{1, "late-replay", "ACP-LOAD-002", false},
		{1, "cancel-end-turn", "ACP-CLOSE-002", false},
		{1, "unadvertised-call", "ACP-CLIENTCAP-001", false},
		{1, "unadvertised-call", "ACP-CLIENTCAP-002", false},
		{1, "ignore-eof", "ACP-SHUTDOWN-001", true},
		{2, "late-replay", "ACP-RESUME-202", false},
		{2, "cancel-end-turn", "ACP-CANCEL-201", false},
		{2, "unknown-stop", "ACP-STATE-203", false},
		{2, "unadvertised-call", "ACP-CLIENTCAP-202", false},
		{2, "version=7", "ACP-INIT-201", false},
	} {
		o := options(t, x.version, "--fault="+x.fault)
		o.Limit = 2 * time.Second
		// the aggregated rows look at what the others saw
		o.Filter = regexp.MustCompile("^(ACP-PROMPT-00[12]|ACP-LIST-001|ACP-LOAD-001|" + x.fails + ")$")
		r, err := check.Run(t.Context(), o, still)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, row := range r.Rows {
			found = found || row.ID == x.fails && (row.Status == check.Fail || row.Status == check.NotTested)
		}
		if !found || r.Conformant != x.conformant {
			t.Errorf("v%d with %s: %s does not fail: %+v", x.version, x.fault, x.fails, r)
		}
	}
}

func TestDeadAgent(t *testing.T) {
	o := options(t, 1)
	o.Command = proc.Command{Argv: []string{"false"}}
	r, err := check.Run(t.Context(), o, still)
	if err != nil || r.Conformant || r.Count(check.Mandatory, check.NotTested) == 0 || r.Count("", check.Pass) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := check.Run(t.Context(), check.Options{Version: 3}, still); err == nil {
		t.Error("version 3 is checked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := check.Run(ctx, options(t, 1), still); err == nil {
		t.Error("a check that was cancelled says nothing")
	}
}

func TestVersionMismatch(t *testing.T) {
	r, err := check.Run(t.Context(), options(t, 2, "--protocol=v1"), still)
	if err != nil || r.Conformant || !strings.Contains(r.Reason, "VERSION-MISMATCH") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReports(t *testing.T) {
	r := check.Report{Agent: "a <b>", Version: 1, Rows: []check.Row{
		{ID: "X-1", Tier: check.Mandatory, Title: "one", Status: check.Pass, Took: 1500 * time.Millisecond},
		{ID: "X-2", Tier: check.Mandatory, Title: "two", Status: check.Fail, Detail: "bad\nline & <tag> \x1b"},
		{ID: "X-3", Tier: check.Advisory, Title: "three", Status: check.Fail, Detail: "hm"},
		{ID: "X-4", Tier: check.Capability, Title: "four", Status: check.Skip, Detail: "no"},
	}}
	var junit bytes.Buffer
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Tests != 4 || suite.Failures != 1 || suite.Skipped != 2 {
		t.Errorf("%+v, %v in %s", suite, err, junit.String())
	}
	var text bytes.Buffer
	if err := r.PrintSummary(&text); err != nil || !strings.Contains(text.String(), "NOT CONFORMANT") {
		t.Error(text.String(), err)
	}
}
