package client_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
)

// withFault is a client of an agent that misbehaves, in version 1 and 2.
func withFault(t *testing.T, fault string, run func(t *testing.T, r *rig, v2 bool)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			leaks(t)
			cfg, rec := config(t, "--fault="+fault)
			cfg.Versions, cfg.MaxLine = []int{version}, 1<<20
			run(t, launchWith(t, cfg, rec), version == 2)
		})
	}
}

// TestTurnsThatComplete are the faults that a client lives through.
func TestTurnsThatComplete(t *testing.T) {
	for fault, want := range map[string][2]string{ // findings in v1 and in v2
		"noise":              {"transport.json", "transport.json"},
		"bad-line":           {"transport.json", "transport.json"},
		"bad-utf8":           {"transport.utf8", "transport.utf8"},
		"split-writes":       {"", ""},
		"huge-line=2000000":  {"transport.size", "transport.size"},
		"late-update":        {"turn.order", "turn.order"},
		"response-first":     {"turn.order", "turn.order"},
		"double-response":    {"response.known_id", "response.known_id"},
		"unknown-update":     {"", ""},
		"unknown-stop":       {"stop.reason", ""},
		"unknown-session":    {"session.known", "session.known"},
		"unannounced-tool":   {"toolcall.announced", ""},
		"flood=1000":         {"", ""},
		"late-answer=50":     {"", ""},
		"stderr-flood=1":     {"", ""},
		"null-arrays":        {"null.array", ""},
		"malformed-optional": {"", ""},
		"early-update":       {"setup.order", ""},
	} {
		t.Run(fault, func(t *testing.T) {
			withFault(t, fault, func(t *testing.T, r *rig, v2 bool) {
				s := r.session()
				for range 2 {
					got := r.prompt(s, "greet")
					stop := "end_turn"
					if fault == "unknown-stop" {
						stop = "testy_future"
					}
					if got.StopReason != stop || got.Unknown != (fault == "unknown-stop") {
						t.Errorf("the turn ends with %+v", got)
					}
				}
				kinds := r.rec.kinds()
				switch fault {
				case "unknown-update":
					e := r.rec.all()[0]
					if !e.Unknown || e.Kind != "testy_future" || !strings.Contains(string(e.Raw), `"answer":42`) {
						t.Errorf("%+v", e)
					}
				case "early-update":
					if !contains(kinds, "available_commands_update") {
						t.Errorf("the early update is lost: %v", kinds)
					}
				case "flood=1000":
					checkFlood(t, r.rec.all(), 1000)
				case "huge-line=2000000":
					if contains(kinds, "agent_message_chunk") {
						t.Error("the huge line is delivered")
					}
				}
				rule := want[0]
				if v2 {
					rule = want[1]
				}
				if rule == "" {
					r.says()
				} else {
					r.says(rule)
				}
			})
		})
	}
}

// checkFlood: every update of two turns is there, in order.
func checkFlood(t *testing.T, events []client.Event, n int) {
	t.Helper()
	next, turns := 0, 0
	for _, e := range events {
		if e.Kind != "agent_thought_chunk" {
			continue
		}
		if want := fmt.Sprintf("flood %d", next); e.Text() != want {
			t.Fatalf("%q comes where %q should", e.Text(), want)
		}
		if next++; next == n {
			next, turns = 0, turns+1
		}
	}
	if turns != 2 || next != 0 {
		t.Errorf("%d floods and %d updates", turns, next)
	}
}

// TestHugeLine: 64 MiB on one line cost no more memory than the limit, and the
// turn completes.
func TestHugeLine(t *testing.T) {
	leaks(t)
	cfg, rec := config(t, "--fault=huge-line")
	cfg.MaxLine = 4 << 20
	r := launchWith(t, cfg, rec)
	s := r.session()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.prompt(s, "greet")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
		t.Errorf("a line of 64 MiB allocates %d MiB", grown>>20)
	}
	r.says("transport.size")
}

// TestFlood: ten thousand updates, all there, in order.
func TestFlood(t *testing.T) {
	r := launch(t, "--fault=flood")
	s := r.session()
	r.prompt(s, "greet")
	r.prompt(s, "greet")
	checkFlood(t, r.rec.all(), 10_000)
	r.says()
}

func TestLateReplay(t *testing.T) {
	withFault(t, "late-replay", func(t *testing.T, r *rig, _ bool) {
		s := r.session()
		r.prompt(s, "greet")
		if _, err := r.Load(t.Context(), s.ID, "/"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.List(t.Context(), ""); err != nil { // the replay has come by now
			t.Fatal(err)
		}
		r.says("load.replay")
	})
}

func TestNullArrays(t *testing.T) {
	r := launch(t, "--fault=null-arrays")
	s := r.session()
	r.prompt(s, "session_updates")
	if list, err := r.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	r.says("null.array")
}

func TestMalformedOptional(t *testing.T) {
	r := launch(t, "--fault=malformed-optional")
	s := r.session()
	r.prompt(s, "session_updates")
	if list, err := r.List(t.Context(), ""); err != nil || len(list) != 1 || list[0].Cwd != "/" {
		t.Error(list, err)
	}
	r.says("schema.valid")
}

func TestUnadvertisedCall(t *testing.T) {
	cfg, rec := config(t, "--fault=unadvertised-call")
	cfg.Files, cfg.Terminals = false, false
	r := launchWith(t, cfg, rec)
	r.prompt(r.session(), "greet")
	r.says("capability.client")
}

func TestCrashes(t *testing.T) {
	for fault, want := range map[string]proc.Exit{"exit": {Code: 7}, "exit=3": {Code: 3}, "half-line": {Code: 7}, "kill": {Code: -1, Signal: "SIGKILL"}} {
		withFault(t, fault, func(t *testing.T, r *rig, _ bool) {
			s := r.session()
			_, err := s.Prompt(t.Context(), client.Text("greet"))
			end, ok := errors.AsType[*client.EndError](err)
			if !ok || end.Reason != client.Crashed || end.Exit == nil || *end.Exit != want {
				t.Fatalf("%s: %v", fault, err)
			}
			if strings.HasPrefix(fault, "exit") && !strings.Contains(end.Stderr, "exits as asked") {
				t.Errorf("the tail of stderr is %q", end.Stderr)
			}
			if _, err := r.List(t.Context(), ""); err == nil {
				t.Error("a call after the end succeeds")
			}
			if report := r.Stop(context.Background()); report.Step != proc.StepNone {
				t.Errorf("%+v", report)
			}
			if _, found := r.broken()["transport.json"]; found != (fault == "half-line") {
				t.Errorf("%s: %v", fault, r.Findings())
			}
		})
	}
}

func TestHangs(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, fault := range []string{"hang", "ignore-cancel", "wrong-id"} {
			t.Run(fmt.Sprint(fault, version), func(t *testing.T) {
				if version == 2 && fault == "wrong-id" {
					t.Skip("version 2 does not need the response to end a turn")
				}
				leaks(t)
				cfg, rec := config(t, "--fault="+fault)
				cfg.Versions, cfg.TurnLimit, cfg.CancelGrace = []int{version}, 200*time.Millisecond, 200*time.Millisecond
				r := launchWith(t, cfg, rec)
				text := "wait_for_cancel"
				if fault == "wrong-id" {
					text = "greet"
				}
				_, err := r.session().Prompt(t.Context(), client.Text(text))
				if end, ok := errors.AsType[*client.EndError](err); !ok || end.Reason != client.Hung {
					t.Fatalf("%s: %v", fault, err)
				}
				want := "cancel.result"
				if fault == "wrong-id" {
					want = "response.known_id"
				}
				if found := r.broken(); found[want].Rule == "" {
					t.Errorf("no finding %s among %v", want, found)
				}
			})
		}
	}
}

func TestHangInit(t *testing.T) {
	leaks(t)
	cfg, _ := config(t, "--fault=hang-init")
	cfg.StartLimit = 200 * time.Millisecond
	_, err := client.Start(t.Context(), cfg)
	end, ok := errors.AsType[*client.EndError](err)
	if !ok || end.Reason != client.Hung || !strings.Contains(err.Error(), "no answer to initialize within 200ms") {
		t.Error(err)
	}
}

func TestStringID(t *testing.T) {
	leaks(t)
	cfg, _ := config(t, "--fault=string-id")
	cfg.StartLimit = 200 * time.Millisecond
	if _, err := client.Start(t.Context(), cfg); err == nil {
		t.Error("an id of another type is taken for the same")
	}
}

func TestCancelsThatGoWrong(t *testing.T) {
	for _, fault := range []string{"cancel-error", "cancel-end-turn"} {
		t.Run(fault, func(t *testing.T) {
			withFault(t, fault, func(t *testing.T, r *rig, v2 bool) {
				s := r.session()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				got, err := s.Prompt(ctx, client.Text("wait_for_cancel"))
				if err != nil || !got.Cancelled {
					t.Errorf("%+v, %v", got, err)
				}
				if fault == "cancel-error" && !v2 && got.StopReason != "cancelled" {
					t.Errorf("%+v", got)
				}
				r.says("cancel.result")
			})
		})
	}
}

func TestUnsupportedVersion(t *testing.T) {
	leaks(t)
	cfg, _ := config(t, "--fault=version")
	_, err := client.Start(t.Context(), cfg)
	end, ok := errors.AsType[*client.EndError](err)
	if !ok || end.Reason != client.RefusedVersion || !strings.Contains(err.Error(), "99") || !strings.Contains(err.Error(), "asked for 1") {
		t.Error(err)
	}
}

func TestStopsThatTakeForce(t *testing.T) {
	for fault, want := range map[string]proc.Step{"ignore-eof": proc.StepTerm, "ignore-term": proc.StepKill} {
		t.Run(fault, func(t *testing.T) {
			leaks(t)
			cfg, rec := config(t, "--fault="+fault)
			cfg.Grace = 300 * time.Millisecond
			r := launchWith(t, cfg, rec)
			r.prompt(r.session(), "greet")
			if report := r.Stop(context.Background()); report.Step != want {
				t.Errorf("%+v", report)
			}
			r.says("exit.eof")
		})
	}
}

func TestOrphan(t *testing.T) {
	leaks(t)
	r := launch(t, "--fault=orphan")
	r.prompt(r.session(), "greet")
	begin := time.Now()
	report := r.Stop(context.Background())
	if report.Step != proc.StepStdin || report.Survivors != 1 {
		t.Errorf("%+v", report)
	}
	if time.Since(begin) > 5*time.Second {
		t.Errorf("the stop took %s", time.Since(begin))
	}
	r.says()
}

func TestStrictClient(t *testing.T) {
	cfg, rec := config(t, "--fault=bad-line")
	cfg.Strict = true
	r := launchWith(t, cfg, rec)
	_, err := r.session().Prompt(t.Context(), client.Text("greet"))
	if end, ok := errors.AsType[*client.EndError](err); !ok || end.Reason != client.BrokenProtocol {
		t.Error(err)
	}
}

// TestKilledFromOutside: calls that wait fail at once.
func TestKilledFromOutside(t *testing.T) {
	leaks(t)
	cfg, rec := config(t)
	r := launchWith(t, cfg, rec)
	s := r.session()
	rec.on = func(e client.Event) {}
	done := make(chan error, 1)
	go func() {
		_, err := s.Prompt(context.Background(), client.Text("wait_for_cancel"))
		done <- err
	}()
	if _, err := r.List(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if end, ok := errors.AsType[*client.EndError](<-done); !ok || end.Reason != client.Crashed || end.Exit.Signal != "SIGKILL" {
		t.Errorf("%v", end)
	}
}
