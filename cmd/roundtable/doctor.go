package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/redact"
	"roundtable/internal/repo"
)

// doctorCmd looks whether the machine, the data folder and the workspaces are
// as the service needs them, with a server or without.
type doctorCmd struct {
	Data string `help:"Data folder; default: .roundtable in the current folder." type:"path"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// A diagnosis is what doctor found.
type diagnosis struct {
	OK         bool      `json:"ok"` // no check failed and none could not be made
	Version    string    `json:"version"`
	Data       string    `json:"data"`
	Server     *int      `json:"server_pid"` // that uses the data folder: null if none does, 0 if it cannot be learned
	Config     []setting `json:"config"`
	Abilities  abilities `json:"abilities"`
	Checks     []finding `json:"checks"`
	Workspaces []patient `json:"workspaces"`
}

// A finding is how one check ended. A check that was not made says why.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // passed, failed, error or skipped
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// A patient is a workspace and what was found there.
type patient struct {
	Workspace string            `json:"workspace_id"`
	Name      string            `json:"name"`
	Root      string            `json:"root"`
	Kind      string            `json:"kind"`
	Abilities *repo.ProbeResult `json:"abilities,omitempty"` // of the file system under the root
	Checks    []finding         `json:"checks"`
}

// Run prints the diagnosis, and fails if anything is wrong.
func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	d := diagnosis{Version: version(), Data: dataFolder(c.Data), Config: []setting{}, Checks: []finding{}, Workspaces: []patient{}}
	x := examination{diagnosis: &d, t: t, named: c.Data != ""}
	if err := x.all(ctx); err != nil {
		return err
	}
	d.OK = d.healthy()
	var err error
	if c.JSON {
		e := json.NewEncoder(t.out)
		e.SetIndent("", "  ")
		err = e.Encode(d)
	} else {
		err = d.print(t.out)
	}
	if err == nil && !d.OK {
		err = exitError{Code: cli.Failed}
	}
	return err
}

func (d diagnosis) healthy() bool {
	sound := func(fs []finding) bool {
		for _, f := range fs {
			if f.Status == "failed" || f.Status == "error" {
				return false
			}
		}
		return true
	}
	for _, w := range d.Workspaces {
		if !sound(w.Checks) {
			return false
		}
	}
	return sound(d.Checks)
}

// print writes the diagnosis for people.
func (d diagnosis) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "roundtable %s, data folder %s\n\n", d.Version, d.Data)
	for _, s := range d.Config {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Name, s.Value, s.From)
	}
	fmt.Fprintf(w, "\nsandbox level %s, Landlock ABI %d, kernel %s\n\n", d.Abilities.Sandbox, d.Abilities.Landlock, d.Abilities.Kernel)
	printFindings(w, d.Checks)
	for _, p := range d.Workspaces {
		fmt.Fprintf(w, "\nworkspace %s (%s, %s) at %s\n", p.Name, p.Workspace, p.Kind, p.Root)
		if a := p.Abilities; a != nil {
			fmt.Fprintf(w, "  exact renames %s, openat2 %s, syncfs %s\n", yes(a.AtomicDetect), yes(a.Openat2), yes(a.SyncFS))
		}
		printFindings(w, p.Checks)
	}
	word := "\neverything that could be looked at is as it should be"
	if !d.OK {
		word = "\nsomething is wrong: see above"
	}
	fmt.Fprintln(w, word)
	return w.Flush()
}

func printFindings(w io.Writer, all []finding) {
	for _, f := range all {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Status, f.Check, f.Detail)
		if f.Next != "" {
			fmt.Fprintf(w, "  \t\t→ %s\n", f.Next)
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// examined makes the finding of a check that ended with err, or with detail.
func examined(check, detail string, err error, next string) finding {
	if err == nil {
		return finding{Check: check, Status: "passed", Detail: detail}
	}
	f := finding{Check: check, Status: "error", Detail: err.Error(), Next: next}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal {
		f.Status, f.Detail = "failed", e.Detail
	} else if errors.As(err, new(wrong)) {
		f.Status = "failed"
	}
	f.Detail = strings.Join(strings.Fields(redact.Text(f.Detail)), " ")
	return f
}

// A wrong thing was found by looking: that is no fault of the look.
type wrong string

func (w wrong) Error() string { return string(w) }

func wrongf(format string, args ...any) error { return wrong(fmt.Sprintf(format, args...)) }
