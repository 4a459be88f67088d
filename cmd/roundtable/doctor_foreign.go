package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"roundtable/commands"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// A comparison asks whoever has the data folder to compare a workspace's known
// paths with its files, and to record what was changed behind its back.
type comparison func(ctx context.Context, workspace string) (wire.RepositoryCheck, error)

// offline compares by this program, which has the data folder. Call stop when
// done.
func (a *app) offline(ctx context.Context) (compare comparison, stop func() error, err error) {
	following, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.views.Run(following) }()
	stop = func() error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	head, _, err := a.store.Head(ctx)
	if err == nil {
		err = a.reader.Await(ctx, "proposals", head) // which proposals are open is asked of the view
	}
	key := ids()
	return func(ctx context.Context, workspace string) (out wire.RepositoryCheck, err error) {
		r, err := a.handler.Do(ctx, commands.System(workspace, "doctor."+key()), commands.CheckRepository{})
		if err != nil {
			return out, err
		}
		return a.handler.Found(ctx, workspace, r)
	}, stop, err
}

// online compares by the server that has the data folder.
func online(t terminal) (comparison, error) {
	ops, err := elsewhere(t)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == commands.CheckRepository{}.Name() })
	key := ids()
	return func(ctx context.Context, workspace string) (out wire.RepositoryCheck, err error) {
		v, err := ops[i].Run(ctx, op.Call{Workspace: workspace, Key: "doctor." + key()}, []byte("{}"))
		if err != nil {
			return out, err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return out, err
		}
		var answer struct {
			Check wire.RepositoryCheck `json:"check"`
		}
		err = json.Unmarshal(raw, &answer)
		return answer.Check, err
	}, nil
}

// compared makes the finding of a comparison.
func compared(c wire.RepositoryCheck, err error) finding {
	const check = "foreign_changes"
	switch {
	case err != nil:
		return examined(check, "", err, "")
	case c.Waits != "":
		return finding{Check: check, Status: "skipped", Detail: "transaction " + c.Waits + " has not ended: what lies there is not certain"}
	case c.Changed > 0:
		return examined(check, "", wrongf("%d of %d known paths were changed behind the service's back, which is recorded now: %s", c.Changed, c.Checked, changes(c)),
			"claims on them are stale: claim again, and attach revisions made on what lies there now")
	}
	return examined(check, fmt.Sprintf("all %d known paths are as they were left", c.Checked), nil, "")
}

// changes names the first paths of a comparison, and what became of them.
func changes(c wire.RepositoryCheck) string {
	var words []string
	for _, f := range c.Changes {
		for _, p := range f.Paths {
			if len(words) == 10 {
				return strings.Join(words, ", ") + " and others"
			}
			words = append(words, p.Path+" "+became(p))
		}
	}
	return strings.Join(words, ", ")
}

func became(p wire.ForeignPath) string {
	switch {
	case p.Is.Kind == "absent":
		return "was removed"
	case p.Was.Kind == "absent":
		return "was made"
	case p.Is.Kind != p.Was.Kind:
		return "is a " + p.Is.Kind + " now"
	case p.Is.SHA256 == p.Was.SHA256:
		return "has mode " + p.Is.Mode + " now"
	}
	return "was edited"
}
