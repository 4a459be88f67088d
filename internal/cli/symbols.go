package cli

import (
	"encoding/json"
	"fmt"
	"io"
)

// fileSymbols is what a person sees of a file in an answer with symbols.
type fileSymbols struct {
	Path   string       `json:"path"`
	Status string       `json:"status"`
	Reason string       `json:"reason"`
	Before []fileSymbol `json:"before"`
	After  []fileSymbol `json:"after"`
}

type fileSymbol struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	First  int    `json:"first_line"`
	Last   int    `json:"last_line"`
	Change string `json:"change"`
}

// showSymbols writes the symbols of files; nothing for what has none. Of one
// that is changed the lines after are told.
func showSymbols(w io.Writer, files []json.RawMessage) {
	for _, raw := range files {
		var f fileSymbols
		if json.Unmarshal(raw, &f) != nil || f.Before == nil || f.After == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s", oneLine(f.Path))
		if f.Status != "ok" {
			fmt.Fprintf(w, "  %s: %s", oneLine(f.Status), oneLine(f.Reason))
		}
		fmt.Fprintln(w)
		for _, s := range f.Before {
			if s.Change != "changed" {
				s.show(w, "before")
			}
		}
		for _, s := range f.After {
			s.show(w, "after")
		}
	}
}

func (s fileSymbol) show(w io.Writer, side string) {
	fmt.Fprintf(w, "  %-7s %s %s  (lines %d-%d %s)\n", oneLine(s.Change), oneLine(s.Kind), oneLine(s.Name), s.First, s.Last, side)
}
