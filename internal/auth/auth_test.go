package auth_test

import (
	"strings"
	"testing"
	"time"

	"roundtable/internal/auth"
)

func TestRoles(t *testing.T) {
	p := auth.Principal{Grants: []auth.Grant{{Workspace: "w", Role: auth.Operator}, {Workspace: "x", Role: auth.Auditor}}}
	for _, x := range []struct {
		workspace string
		role      auth.Role
		want      bool
	}{
		{"w", auth.Operator, true}, {"w", auth.Reviewer, true}, {"w", auth.Tester, true}, {"w", auth.Orchestrator, true},
		{"w", auth.Admin, false}, {"w", auth.Security, false}, {"w", auth.Auditor, false}, {"w", auth.Override, false},
		{"x", auth.Auditor, true}, {"x", auth.Viewer, false}, {"x", auth.Operator, false}, {"y", auth.Operator, false},
		{"", auth.Auditor, true}, {"", auth.Admin, false},
	} {
		if got := p.Has(x.workspace, x.role); got != x.want {
			t.Errorf("has %s in %q: %v", x.role, x.workspace, got)
		}
	}
	if !p.Reads("x") || p.Reads("y") || p.Everywhere(auth.Operator) {
		t.Error("a role in one workspace reaches another")
	}
	all := auth.Principal{Grants: []auth.Grant{{Workspace: auth.AllWorkspaces, Role: auth.Admin}}}
	if !all.Has("y", auth.Implementer) || !all.Everywhere(auth.Admin) || all.Everywhere(auth.Security) {
		t.Error("an admin of all workspaces is none")
	}
}

func TestTokens(t *testing.T) {
	a, hash := auth.NewToken("TK-1")
	b, _ := auth.NewToken("TK-1")
	if a == b || auth.TokenID(a) != "TK-1" || !auth.SameToken(a, hash) || auth.SameToken(b, hash) || strings.Contains(hash, a) {
		t.Errorf("%q, %q, %q", a, b, hash)
	}
	for _, bad := range []string{"", "rt_", "rt_TK-1", "rt_TK-1_short", "xx_TK-1_" + strings.Repeat("a", 43), a + "a"} {
		if id := auth.TokenID(bad); id != "" {
			t.Errorf("%q has the id %q", bad, id)
		}
	}
}

func TestLimiter(t *testing.T) {
	now := time.Unix(0, 0)
	l := auth.NewLimiter(10, 2, func() time.Time { return now })
	take := func(who string) bool { _, ok := l.Take(who); return ok }
	for i, want := range []bool{true, true, false} {
		if take("a") != want {
			t.Errorf("call %d of a burst of two: %v", i+1, !want)
		}
	}
	if !take("b") {
		t.Error("one principal uses up another's calls")
	}
	if wait, ok := l.Take("a"); ok || wait != 100*time.Millisecond {
		t.Errorf("wait %v", wait)
	}
	now = now.Add(100 * time.Millisecond)
	for i, want := range []bool{true, false} {
		if take("a") != want {
			t.Errorf("call %d after a tenth of a second: %v", i+1, !want)
		}
	}
	now = now.Add(-time.Hour) // a clock that goes back gives nothing
	if take("a") {
		t.Error("the past gave a call")
	}
	free := auth.NewLimiter(0, 0, func() time.Time { return now })
	for range 1000 {
		if _, ok := free.Take("a"); !ok {
			t.Fatal("no limit limits")
		}
	}
	for i := range 5000 { // full buckets are forgotten
		now = now.Add(time.Second)
		l.Take(strings.Repeat("x", i%4000+1))
	}
}
