package repo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

// An Earlier is a file or link as a commit has it.
type Earlier struct {
	Mode string
	Data []byte
}

// maxCommits bounds how far back versions of files are looked for.
const maxCommits = 200

// Earlier finds older versions of paths, each by the first digits of its object
// id, among what the last commits have at that very path: nothing else of the
// repository can be had by naming an id. Those it does not find are left out.
func (w *Workspace) Earlier(ctx context.Context, ids map[string]string) (map[string]Earlier, error) {
	found := map[string]Earlier{}
	head, err := w.Head(ctx)
	if err != nil || head == "" || len(ids) == 0 {
		return found, err
	}
	commits, err := w.git(ctx, call{args: []string{"rev-list", fmt.Sprintf("--max-count=%d", maxCommits), head}})
	if err != nil {
		return nil, err
	}
	var paths []string
	for p := range ids {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for some := range slices.Chunk(paths, 200) { // they go on a command line
		args := append([]string{"diff-tree", "--stdin", "-r", "-m", "--root", "--no-renames", "--no-commit-id", "--full-index", "-z", "--"}, some...)
		out, err := w.git(ctx, call{args: args, stdin: commits, env: []string{"GIT_LITERAL_PATHSPECS=1"}})
		if err != nil {
			return nil, err
		}
		if err := w.pick(ctx, records(out), ids, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// pick reads git's raw records, the newest commit's first, and fetches what is
// looked for.
func (w *Workspace) pick(ctx context.Context, raw []string, ids map[string]string, found map[string]Earlier) error {
	for i := 0; i+1 < len(raw); i += 2 {
		head, path := strings.Fields(strings.TrimPrefix(raw[i], ":")), raw[i+1]
		if len(head) != 5 {
			return fmt.Errorf("git diff-tree answers %q", raw[i])
		}
		if _, is := found[path]; is || ids[path] == "" {
			continue
		}
		for k, mode := range head[:2] {
			id := head[2+k]
			if !strings.HasPrefix(id, ids[path]) || mode != "100644" && mode != "100755" && mode != "120000" {
				continue
			}
			var data bytes.Buffer
			if err := w.object(ctx, id, &data, "blob"); err != nil {
				return err
			}
			found[path] = Earlier{mode, data.Bytes()}
			break
		}
	}
	return nil
}
