package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A fileDiff is what a person sees of a file in an answer with hunks.
type fileDiff struct {
	Path  string `json:"path"`
	Hunks []struct {
		OldStart  int    `json:"old_start"`
		OldLines  int    `json:"old_lines"`
		NewStart  int    `json:"new_start"`
		NewLines  int    `json:"new_lines"`
		Section   string `json:"section"`
		Continued bool   `json:"continued"`
		Lines     []struct {
			Op   string `json:"op"`
			Text string `json:"text"`
			End  string `json:"end"`
			Cut  bool   `json:"cut"`
		} `json:"lines"`
	} `json:"hunks"`
}

// showHunks writes the hunks of files as a diff; nothing for what has none.
func showHunks(w io.Writer, files []json.RawMessage) {
	for _, raw := range files {
		var f fileDiff
		if json.Unmarshal(raw, &f) != nil || len(f.Hunks) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", oneLine(f.Path))
		for _, h := range f.Hunks {
			head := fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldStart, h.OldLines, h.NewStart, h.NewLines, oneLine(h.Section))
			if h.Continued {
				head += " (continued)"
			}
			fmt.Fprintln(w, strings.TrimRight(head, " "))
			for _, l := range h.Lines {
				mark, after := map[string]string{"add": "+", "remove": "-"}[l.Op], ""
				if mark == "" {
					mark = " "
				}
				if l.Cut {
					after = " …"
				}
				if l.End != "" {
					after += "  (line end: " + oneLine(l.End) + ")"
				}
				fmt.Fprintln(w, mark+oneLine(l.Text)+after)
			}
		}
	}
}

// oneLine is plain without line breaks.
func oneLine(s string) string { return strings.ReplaceAll(plain(s), "\n", " ") }
