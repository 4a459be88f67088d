package peers_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"roundtable/internal/acp/proc"
)

// node is the way to run a script of the TypeScript peers.
func node(t *testing.T, script string) []string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: the official SDK cannot be tested against")
	}
	dir, err := filepath.Abs(filepath.Join("testdata", "ts"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@agentclientprotocol", "sdk")); err != nil {
		t.Skip("the official SDK is not installed: run tools/install.sh")
	}
	return []string{path, filepath.Join(dir, script)}
}

// seen is what the client made with the SDK prints for a turn.
type seen struct {
	Prompt, Stop string
	Seen         []string
}

func runClient(t *testing.T, version, prompts string, args ...string) map[string]seen {
	t.Helper()
	argv := append(node(t, "client.mjs"), version, prompts)
	agent := self(t, "testy", args...)
	argv = append(argv, agent.Argv...)
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = agent.Env, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	turns := map[string]seen{}
	for line := range bytes.Lines(out) {
		var s seen
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s.Prompt == "error" {
			t.Fatalf("the SDK fails: %s", s.Stop)
		}
		turns[s.Prompt] = s
	}
	return turns
}

func TestTypeScriptClientDrivesTestyV1(t *testing.T) {
	turns := runClient(t, "v1", "greet,help,content,session_updates,tool_calls,callbacks,elicitations,cancel_status,wait_for_cancel,full")
	callbacks := []string{
		"session/request_permission", "fs/write_text_file", "fs/read_text_file", "terminal/create", "terminal/output",
		"terminal/wait_for_exit", "terminal/kill", "terminal/release",
	}
	for prompt, want := range map[string]struct {
		stop  string
		count int
		seen  []string
	}{
		"greet": {"end_turn", 1, []string{"agent_message_chunk"}}, "help": {"end_turn", 1, nil}, "content": {"end_turn", 8, nil},
		"session_updates": {"end_turn", 19, []string{"usage_update", "current_mode_update", "plan"}}, "tool_calls": {"end_turn", 7, nil},
		"callbacks": {"end_turn", 15, callbacks}, "elicitations": {"end_turn", 7, []string{"elicitation/complete"}},
		"cancel_status": {"end_turn", 1, nil}, "wait_for_cancel": {"cancelled", 0, nil}, "full": {"end_turn", 37, callbacks}, "list": {"1", 0, nil},
	} {
		got := turns[prompt]
		if got.Stop != want.stop || len(got.Seen) != want.count {
			t.Errorf("%s: %d messages and %q: %v", prompt, len(got.Seen), got.Stop, got.Seen)
		}
		for _, kind := range want.seen {
			if !slices.Contains(got.Seen, kind) {
				t.Errorf("%s: no %s", prompt, kind)
			}
		}
	}
}

func TestTypeScriptClientDrivesTestyV2(t *testing.T) {
	for _, draft := range []string{"alpha.3", "next"} {
		turns := runClient(t, "v2", "greet,help,cancel_status,wait_for_cancel,full,content", "--draft="+draft)
		for prompt, stop := range map[string]string{
			"greet": "end_turn", "help": "end_turn", "cancel_status": "end_turn", "wait_for_cancel": "cancelled", "full": "refusal", "content": "refusal", "list": "1",
		} {
			got := turns[prompt]
			if got.Stop != stop {
				t.Errorf("%s %s: %+v", draft, prompt, got)
			}
			if prompt != "list" && (len(got.Seen) < 3 || got.Seen[0] != "user_message" || got.Seen[1] != "state_update running") {
				t.Errorf("%s %s: %v", draft, prompt, got.Seen)
			}
		}
	}
}

func TestOurClientDrivesATypeScriptAgent(t *testing.T) {
	argv := node(t, "agent.mjs")
	for version := 1; version <= 2; version++ {
		drive(t, proc.Command{Argv: argv}, version, "ts-peer")
	}
}
