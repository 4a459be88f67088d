package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
	"roundtable/internal/acp/rules"
	"roundtable/internal/acp/schema"
)

// built is testy, built once: without the race detector, for its own tests have
// that, and it is started a hundred times here.
var built string

// schemas are those of alpha.3, loaded once.
var schemas map[int]*schema.Set

func TestMain(m *testing.M) {
	if os.Getenv(asScript) != "" {
		scriptAgent()
	}
	os.Exit(withTesty(m))
}

func withTesty(m *testing.M) int {
	dir, err := os.MkdirTemp("", "testy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if schemas, err = rules.Schemas(false); err != nil {
		panic(err)
	}
	built = filepath.Join(dir, "testy")
	if out, err := exec.Command("go", "build", "-o", built, "roundtable/cmd/testy").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	return m.Run()
}

func agent(_ testing.TB, args ...string) proc.Command {
	return proc.Command{Argv: append([]string{built}, args...)}
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []client.Event
	on     func(client.Event)
}

func (r *recorder) event(e client.Event) {
	r.mu.Lock()
	r.events = append(r.events, e)
	on := r.on
	r.mu.Unlock()
	if on != nil {
		on(e)
	}
}

func (r *recorder) all() []client.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]client.Event{}, r.events...)
}

func (r *recorder) kinds() (kinds []string) {
	for _, e := range r.all() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// rig is a client of testy and what it saw.
type rig struct {
	*client.Client
	t   *testing.T
	rec *recorder
}

// leaks checks, when the test is over, that nothing of it is left.
func leaks(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 100 { // what has returned may not have gone yet
			if runtime.NumGoroutine() <= goroutines {
				break
			}
			runtime.Gosched()
			time.Sleep(5 * time.Millisecond)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			buf := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before:\n%s", now, goroutines, buf[:runtime.Stack(buf, true)])
		}
		now, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		if len(now) > len(files) {
			t.Errorf("open files %v, before %v", now, files)
		}
	})
}

func config(t *testing.T, args ...string) (client.Config, *recorder) {
	t.Helper()
	rec := &recorder{}
	return client.Config{
		Schemas: schemas,
		Command: agent(t, args...), Versions: []int{1}, Root: t.TempDir(), Files: true, Terminals: true,
		Permission: client.First, Elicit: client.AutoElicit, Event: rec.event,
		StartLimit: 10 * time.Second, CancelGrace: 10 * time.Second, Grace: 10 * time.Second,
	}, rec
}

func launch(t *testing.T, args ...string) *rig {
	t.Helper()
	cfg, rec := config(t, args...)
	return launchWith(t, cfg, rec)
}

func launchWith(t *testing.T, cfg client.Config, rec *recorder) *rig {
	t.Helper()
	c, err := client.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return &rig{c, t, rec}
}

func (r *rig) session() *client.Session {
	r.t.Helper()
	s, err := r.NewSession(r.t.Context(), "/")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) prompt(s *client.Session, text string) client.Result {
	r.t.Helper()
	result, err := s.Prompt(r.t.Context(), client.Text(text))
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// broken are the rules that were broken, each once, after the agent has ended.
func (r *rig) broken() map[string]rules.Finding {
	r.t.Helper()
	r.Stop(context.Background())
	found := map[string]rules.Finding{}
	for _, f := range r.Findings() {
		if _, ok := found[f.Rule]; !ok {
			found[f.Rule] = f
		}
	}
	return found
}

// says checks the findings by their rules: exactly these.
func (r *rig) says(rule ...string) {
	r.t.Helper()
	found := r.broken()
	for _, name := range rule {
		if _, ok := found[name]; !ok {
			r.t.Errorf("no finding %s", name)
		}
		delete(found, name)
	}
	for _, f := range found {
		r.t.Errorf("the finding %s", f)
	}
}

func lastText(t *testing.T, rec *recorder) string {
	t.Helper()
	all := rec.all()
	for i := len(all) - 1; i >= 0; i-- {
		if text := all[i].Text(); text != "" {
			return text
		}
	}
	return ""
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func contains(kinds []string, kind string) bool {
	return strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+kind+" ")
}
