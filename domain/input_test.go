package domain

import (
	"strings"
	"testing"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// TestResourcePaths: what no patch may touch cannot be claimed.
func TestResourcePaths(t *testing.T) {
	for _, path := range []string{
		strings.Repeat("a/", 2500) + "b", strings.Repeat("x", 256), "a\nb", "a\u200bb", "a\u202eb", ".git", "a/.Git/config", "git~1/x",
		".g\u200cit/x", ".Roundtable/x", "CON", "a/nul.txt", "a.", "a /b", `a\..\b`, "c:/x",
	} {
		for _, kind := range []string{"file:", "directory:"} {
			if _, err := ParseResource(kind + path); fault.CodeOf(err) != "invalid_resource" || len(err.Error()) > 1000 {
				t.Errorf("%.40q: %v", kind+path, err)
			}
		}
	}
}

// TestLines: a title is one line of what can be seen; no text has a NUL.
func TestLines(t *testing.T) {
	for s, want := range map[string]bool{
		"plain": true, "é 漢字 👩\u200d💻": true, "a\u200cb": true,
		"a\nb": false, "a\r": false, "a\tb": false, "a\x1b[31m": false, "a\x00": false, "a\u0085b": false, "a\u202eb": false, "a\u2066b": false,
		"a\u200bb": false, "a\u2028b": false, "\ufeffa": false, "a\u00adb": false,
	} {
		_, err := Task{}.Create(events.TaskCreated{Title: s})
		if (err == nil) != want {
			t.Errorf("title %q: %v", s, err)
		}
	}
	if err := text("body_md", "a\x00b", MaxText, false); fault.CodeOf(err) != "invalid_field" {
		t.Error("a NUL in a text:", err)
	}
	if err := text("body_md", "a\n\tb\u202e", MaxText, false); err != nil {
		t.Error("a text of several lines:", err)
	}
}

// known is a directory of these principals, made one after the other.
func known(t *testing.T, es ...events.PrincipalCreated) Directory {
	t.Helper()
	var d Directory
	for _, e := range es {
		out, err := d.Create(e, nil, auth.Principal{ID: events.System}, Workspaces{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			d = d.Evolve(o)
		}
	}
	return d
}

func TestNamesAndOwners(t *testing.T) {
	agent := func(id, name, owner string) events.PrincipalCreated {
		return events.PrincipalCreated{Principal: id, Name: name, Kind: "agent", Owner: owner}
	}
	d := known(t, agent("PR-1", "early", "Ann"), agent("PR-2", "other", "team"), events.PrincipalCreated{Principal: "PR-3", Name: "ann", Kind: "human"},
		agent("PR-4", "late", "ANN"), agent("PR-5", "teamed", "TEAM"), agent("PR-6", "byid", "PR-3"))
	for _, x := range []struct {
		a, b string
		same bool
	}{{"PR-1", "PR-4", true}, {"PR-1", "PR-3", true}, {"PR-4", "PR-6", true}, {"PR-2", "PR-5", true}, {"PR-1", "PR-2", false}} {
		if got := d.SameOwner(d.Principals[x.a], d.Principals[x.b]); got != x.same {
			t.Errorf("%s and %s have one owner: %v", x.a, x.b, got)
		}
	}
	for _, x := range []struct {
		e    events.PrincipalCreated
		code string
	}{
		{agent("PR-9", "LATE", "team"), "name_taken"}, {agent("PR-9", "x", "a b"), "invalid_field"}, {agent("PR-9", "x", "te\u200bam"), "invalid_field"},
		{agent("PR-9", "x", " "), "invalid_field"}, {agent("PR-9", "", "team"), "invalid_field"}, {agent("PR-9", "x", ""), "missing_field"},
	} {
		if _, err := d.Create(x.e, nil, auth.Principal{ID: events.System}, Workspaces{}); fault.CodeOf(err) != x.code {
			t.Errorf("%+v: %v, want %s", x.e, err, x.code)
		}
	}
	// A history from before: bob and BOB are both there.
	for _, e := range []events.PrincipalCreated{{Principal: "PR-7", Name: "bob"}, {Principal: "PR-8", Name: "BOB"}} {
		d = d.Evolve(e)
	}
	if p, ok := d.Named("BOB"); !ok || p.ID != "PR-8" {
		t.Error("BOB is", p.ID)
	}
	if p, ok := d.Named("Bob"); ok {
		t.Error("Bob is", p.ID)
	}
}
