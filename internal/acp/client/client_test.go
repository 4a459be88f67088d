package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
)

func TestEveryScenario(t *testing.T) {
	leaks(t)
	cfg, rec := config(t)
	cfg.Command.Argv = append(cfg.Command.Argv, "--scratch="+cfg.Root)
	r := launchWith(t, cfg, rec)
	if a := r.Agent(); a.Version != 1 || a.Name != "testy" || !a.Can("loadSession") || !a.Can("sessionCapabilities", "close") || a.Can("mcpCapabilities", "sse") {
		t.Errorf("%+v", a)
	}
	s := r.session()
	for _, name := range []string{"session_updates", "content", "tool_calls", "callbacks", "elicitations", "cancel_status", "full", "greet"} {
		if got := r.prompt(s, name); got.StopReason != "end_turn" || got.Cancelled || got.Unknown {
			t.Errorf("%s: %+v", name, got)
		}
		text := lastText(t, rec)
		if strings.Contains(text, "error") || name != "greet" && !strings.HasPrefix(text, "scenario: "+name) {
			t.Errorf("%s says %s", name, text)
		}
	}
	text := ""
	for _, e := range rec.all() {
		if strings.Contains(e.Text(), "scenario: full") {
			text = e.Text()
		}
	}
	for _, want := range []string{
		`terminal/wait_for_exit: ok {"exitCode":0,"signal":null}`,
		`fs/read_text_file: ok {"content":"written by testy\n"}`, "form_session_accept: ok accept content_fields=4", "url_request_decline: ok decline",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	written, err := os.ReadFile(filepath.Join(cfg.Root, "testy-write.txt"))
	if err != nil || string(written) != "written by testy\n" {
		t.Error(string(written), err)
	}
	r.says()
	if got := r.Stop(context.Background()); got.Step != proc.StepStdin || got.Exit.Code != 0 || got.Survivors != 0 {
		t.Errorf("%+v", got)
	}
}

func TestV2(t *testing.T) {
	for _, draft := range []string{"alpha.3", "next"} {
		cfg, rec := config(t, "--draft="+draft)
		cfg.Versions, cfg.Next = []int{1, 2}, draft == "next"
		if cfg.Next {
			cfg.Schemas = nil
		}
		r := launchWith(t, cfg, rec)
		s := r.session()
		if got := r.prompt(s, "echo hi"); got.StopReason != "end_turn" || got.MessageID != "testy-v2-user-message-0" {
			t.Errorf("%+v", got)
		}
		if got := r.prompt(s, "full"); got.StopReason != "refusal" {
			t.Errorf("%+v", got)
		}
		rec.on = func(e client.Event) {
			if strings.Contains(string(e.Raw), "running") {
				go s.Cancel()
			}
		}
		if got := r.prompt(s, "wait_for_cancel"); got.StopReason != "cancelled" || !got.Cancelled {
			t.Errorf("%+v", got)
		}
		rec.on = nil
		before := len(rec.all())
		if _, err := r.Load(t.Context(), s.ID, "/"); err != nil {
			t.Fatal(err)
		}
		replay := rec.all()[before:]
		if len(replay) < 5 || !replay[0].Replay {
			t.Errorf("replay %s", jsonOf(t, replay))
		}
		if got := r.prompt(s, "echo again"); got.StopReason != "end_turn" {
			t.Errorf("after a replay: %+v", got)
		}
		list, err := r.List(t.Context(), "/")
		if err != nil || len(list) != 1 || list[0].Title != "Testy v2 session" {
			t.Error(list, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.says()
	}
}

func TestLoadAndLists(t *testing.T) {
	r := launch(t)
	s := r.session()
	r.prompt(s, "content")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(r.rec.all())
	s, err := r.Load(t.Context(), s.ID, "/")
	if err != nil {
		t.Fatal(err)
	}
	replay := r.rec.all()[before:]
	if len(replay) != 9 || !replay[0].Replay || !replay[8].Replay {
		t.Errorf("%d updates are replayed", len(replay))
	}
	r.prompt(s, "greet")
	if last := r.rec.all(); last[len(last)-1].Replay {
		t.Error("a new update is marked as replay")
	}
	if err := s.SetMode(t.Context(), "plan"); err != nil {
		t.Error(err)
	}
	if err := s.SetOption(t.Context(), "verbosity", "brief"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	if list, err := r.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	r.says()
}

func TestCancelOnlyWhileATurnRuns(t *testing.T) {
	r := launch(t)
	s := r.session()
	if s.Cancel() {
		t.Error("a cancel is sent without a turn")
	}
	r.prompt(s, "greet")
	if s.Cancel() {
		t.Error("a cancel is sent after the turn")
	}
	if got := r.prompt(s, "cancel_status"); got.StopReason != "end_turn" {
		t.Errorf("%+v", got)
	}
	r.says()
}

// TestCancelWhilePermissionWaits: the pending request is answered at once with
// the outcome cancelled.
func TestCancelWhilePermissionWaits(t *testing.T) {
	cfg, rec := config(t)
	asked := make(chan struct{})
	cfg.Permission = func(ctx context.Context, _ client.Permission) client.Decision {
		close(asked)
		<-ctx.Done()
		return client.Decision{Option: "allow_once"}
	}
	r := launchWith(t, cfg, rec)
	s := r.session()
	go func() {
		<-asked
		s.Cancel()
	}()
	if got := r.prompt(s, "callbacks"); got.StopReason != "cancelled" {
		t.Errorf("%+v", got)
	}
	r.says()
}

func TestContextEndsATurn(t *testing.T) {
	r := launch(t)
	s := r.session()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := s.Prompt(ctx, client.Text("wait_for_cancel"))
	if err != nil || got.StopReason != "cancelled" || !got.Cancelled {
		t.Errorf("%+v, %v", got, err)
	}
	r.says()
}

func TestPolicies(t *testing.T) {
	for name, x := range map[string]struct {
		policy client.Policy
		want   string
	}{
		"deny":  {client.Deny, `{"outcome":{"outcome":"selected","optionId":"reject_once"}}`},
		"allow": {client.Allow, `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`},
		"pick":  {client.Pick("reject_once"), `{"outcome":{"outcome":"selected","optionId":"reject_once"}}`},
		"other": {client.Pick("nope"), `{"outcome":{"outcome":"selected","optionId":"reject_once"}}`},
	} {
		cfg, rec := config(t)
		cfg.Permission = x.policy
		r := launchWith(t, cfg, rec)
		r.prompt(r.session(), "callbacks")
		if text := lastText(t, rec); !strings.Contains(text, "session/request_permission: ok "+x.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestNothingIsOffered(t *testing.T) {
	cfg, rec := config(t)
	cfg.Files, cfg.Terminals, cfg.Elicit = false, false, nil
	r := launchWith(t, cfg, rec)
	s := r.session()
	_, err := s.Prompt(t.Context(), client.Text("callbacks"))
	if err == nil || !strings.Contains(err.Error(), "client does not support form elicitation") {
		t.Error(err)
	}
	r.says("capability.client")
}

func TestContentTheAgentDoesNotTake(t *testing.T) {
	cfg, rec := config(t)
	cfg.Versions = []int{2}
	r := launchWith(t, cfg, rec)
	s := r.session()
	if _, err := s.Prompt(t.Context(), map[string]string{"type": "image", "data": "", "mimeType": "image/png"}); err == nil {
		t.Error("an image is sent to an agent that takes none")
	}
}

func TestNotStarted(t *testing.T) {
	_, err := client.Start(t.Context(), client.Config{Command: proc.Command{Argv: []string{"/nonexistent"}}})
	end, ok := errors.AsType[*client.EndError](err)
	if !ok || end.Reason != client.NotStarted {
		t.Error(err)
	}
	_, err = client.Start(t.Context(), client.Config{Command: proc.Command{Argv: []string{"sh", "-c", "echo no such model >&2; exit 3"}}})
	end, ok = errors.AsType[*client.EndError](err)
	if !ok || end.Reason != client.Crashed || end.Exit == nil || end.Exit.Code != 3 || end.Stderr != "no such model\n" {
		t.Error(err)
	}
}

func TestTerminals(t *testing.T) {
	cfg, rec := config(t)
	cfg.Wrap = func(argv []string) []string {
		return []string{"sh", "-c", "printf 'äöü%.0s' 1 2 3; setsid sleep 600 & exit 3"}
	}
	cfg.Command.Argv = append(cfg.Command.Argv, "--scratch="+cfg.Root)
	r := launchWith(t, cfg, rec)
	r.prompt(r.session(), "callbacks")
	text := lastText(t, rec)
	if !strings.Contains(text, `terminal/wait_for_exit: ok {"exitCode":3`) {
		t.Error(text)
	}
	begin := time.Now()
	if report := r.Stop(context.Background()); report.Step != proc.StepStdin || time.Since(begin) > 5*time.Second {
		t.Errorf("%+v", report)
	}
	if slices.Contains(r.rec.kinds(), "") {
		t.Error("an update has no kind")
	}
}
