package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
)

// maxCompared bounds the known paths that are looked at beneath a directory
// that somebody claims.
const maxCompared = 1000

// version is that of the tree as it was loaded. Who looks at files to compare
// them loads the tree before: the append is guarded by it, so that no apply of
// the service's own was between the look and the word on it.
func (u *unit) version() int64 { return u.seen[events.TreeStream(u.caller.Workspace)] }

// known loads all by which it is known what lies in the workspace.
func (u *unit) known(ctx context.Context) (t domain.Tree, c domain.Claims, err error) {
	if t, err = u.turns(ctx); err == nil {
		c, err = u.claims(ctx)
	}
	return t, c, err
}

// lieAt tells what lies at paths, looking once for each version of the tree.
func (u *unit) lieAt(ctx context.Context, root string, paths []string) ([]events.PathState, error) {
	key, err := json.Marshal(paths)
	if err != nil {
		return nil, err
	}
	return fact(u, fmt.Sprintf("look %d %s %s", u.version(), root, key), func() ([]events.PathState, error) { return u.h.World.Look(ctx, root, paths) })
}

// foreign says what of a sight nobody has left so, but for what git ignores.
func (u *unit) foreign(ctx context.Context, root string, t domain.Tree, s domain.Sight, c domain.Claims) ([]events.Payload, error) {
	paths := changedPaths(t.Foreign(u.caller.Workspace, s, c, u.now))
	if len(paths) == 0 {
		return nil, nil
	}
	type outside struct {
		head    string
		ignored []string
	}
	o, err := fact(u, fmt.Sprintf("outside %d %s %q", u.version(), root, paths), func() (o outside, err error) {
		o.head, o.ignored, err = u.h.World.Outside(ctx, root, paths)
		return o, err
	})
	if err != nil {
		return nil, err
	}
	s.Head = o.head
	return t.Foreign(u.caller.Workspace, s.Without(o.ignored), c, u.now), nil
}

func changedPaths(happened []events.Payload) (paths []string) {
	for _, e := range happened {
		if f, ok := e.(events.WorkspaceForeignChange); ok {
			for _, p := range f.Paths {
				paths = append(paths, p.Path)
			}
		}
	}
	return paths
}

// claimed compares what somebody claims with what is known of it, and answers
// what lies at the path of a file: nil while that is not certain.
func (u *unit) claimed(ctx context.Context, root string, r domain.Resource, c domain.Claims) (found []events.Payload, seen *events.PathState, err error) {
	t, err := u.turns(ctx)
	if err != nil {
		return nil, nil, err
	}
	paths := []string{r.Path}
	if r.Kind == "directory" {
		paths = t.KnownPaths(r, c, u.now)
		paths = paths[:min(len(paths), maxCompared)]
	}
	if len(paths) == 0 || len(t.Applying) > 0 {
		return nil, nil, nil
	}
	now, err := u.lieAt(ctx, root, paths)
	if err != nil {
		return nil, nil, err
	}
	if r.Kind == "file" && len(now) == 1 {
		seen = &now[0]
	}
	found, err = u.foreign(ctx, root, t, domain.Sight{FoundAt: "claim", Now: now}, c)
	return found, seen, err
}

// A noticing is what a call saw of files that are not as they are known, beside
// what it was about.
type noticing struct {
	Root    string
	Version int64 // of the tree when it was loaded, before the files were looked at
	Sight   domain.Sight
}

// notice keeps a sight that something is wrong with, to be recorded once the
// call is over: a question and a refusal append nothing.
func (u *unit) notice(root string, t domain.Tree, s domain.Sight, c domain.Claims) {
	if u.memo == nil && len(t.Foreign(u.caller.Workspace, s, c, u.now)) > 0 {
		u.gathered.noticed = &noticing{root, u.version(), s}
	}
}

// record writes down what a call has noticed, and reports whether that was
// news. What cannot be written now is found again by the next look.
func (h *Handler) record(ctx context.Context, workspace string, n *noticing) bool {
	if n == nil {
		return false
	}
	c := recordForeign{*n}
	wish, err := json.Marshal(c)
	if err == nil {
		sum := sha256.Sum256(wish)
		var r Result
		if r, err = h.Do(ctx, System(workspace, "foreign."+hex.EncodeToString(sum[:])), c); err == nil {
			return r.IDs["found"] != "" && !r.Repeated
		}
	}
	if h.Trouble != nil {
		h.Trouble(ctx, "a foreign change was found and could not be recorded", err)
	}
	return false
}

// recordForeign writes down that paths are not as they are known, unless
// something has become of the tree since they were looked at. Its key is made
// of all that was seen, so a repeat says nothing new.
type recordForeign struct{ noticing }

// Name is the command's in the log of outcomes.
func (recordForeign) Name() string { return "workspace.record_foreign_change" }

func (c recordForeign) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, claims, err := u.known(ctx)
	if err != nil || u.version() != c.Version {
		return nil, err
	}
	out, err := u.foreign(ctx, c.Root, t, c.Sight, claims)
	if len(out) > 0 {
		u.ids["found"] = strconv.Itoa(len(changedPaths(out)))
	}
	return out, err
}

// RecordHeld reports that somebody wrote into files that an apply had replaced:
// the versions are kept, and do not lie at the paths.
type RecordHeld struct {
	Transaction string
	Now         []events.PathState
	Held        map[string]events.PathState
}

// Name is the command's in the log of outcomes.
func (RecordHeld) Name() string { return "workspace.record_held" }

func (c RecordHeld) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, claims, err := u.known(ctx)
	if err != nil {
		return nil, err
	}
	return t.Foreign(u.caller.Workspace, domain.Sight{FoundAt: "apply_conflict", Transaction: c.Transaction, Now: c.Now, Held: c.Held}, claims, u.now), nil
}

// CheckRepository compares every path that is known with what lies there, and
// writes down what somebody changed behind the service's back.
type CheckRepository struct{}

// Name is the command's on the wire.
func (CheckRepository) Name() string { return "repository.check" }

func (c CheckRepository) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	t, claims, err := u.known(ctx)
	if err != nil {
		return nil, err
	}
	if t.Mode != t.Asks {
		return u.takeMode(ctx, root, t, claims)
	}
	bases, err := u.bases(ctx, t)
	if err != nil {
		return nil, err
	}
	paths := t.KnownPaths(domain.Resource{Kind: "directory"}, claims, u.now)
	for p := range bases {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	now, err := u.lieAt(ctx, root, slices.Compact(paths))
	if err != nil {
		return nil, err
	}
	out, err := u.foreign(ctx, root, t, domain.Sight{FoundAt: "doctor", Now: now, Bases: bases}, claims)
	u.ids["checked"], u.ids["found"], u.ids["events"] = strconv.Itoa(len(now)), strconv.Itoa(len(changedPaths(out))), strconv.Itoa(len(out))
	if len(t.Applying) > 0 {
		u.ids["waits_for"] = t.Applying[0]
	}
	return out, err
}

// TakeMode makes the mode in which this service makes changes that of the
// workspace, if it was in another before.
type TakeMode struct{}

// Name is the command's in the log of outcomes.
func (TakeMode) Name() string { return "workspace.take_mode" }

func (TakeMode) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, claims, err := u.known(ctx)
	if err != nil || t.Mode == t.Asks {
		return nil, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	return u.takeMode(ctx, root, t, claims)
}

func (u *unit) takeMode(ctx context.Context, root string, t domain.Tree, c domain.Claims) ([]events.Payload, error) {
	lie, err := u.lieAt(ctx, root, t.KnownPaths(domain.Resource{Kind: "directory"}, c, u.now))
	u.ids["checked"], u.ids["found"], u.ids["events"] = strconv.Itoa(len(lie)), "0", "0"
	return t.TakeMode(u.caller.Workspace, lie, u.now), err
}

// mode is the one in which this service makes changes in a workspace of a kind.
func (u *unit) mode(kind string) domain.Mode {
	if p := u.h.Policy.Apply; p.Commits() && kind == "git" {
		return domain.Mode{Commit: true, Branch: p.Branch}
	}
	return domain.Mode{}
}

// Modes returns the mode in which the paths of a workspace are known, and that
// in which h looks at them.
func (h *Handler) Modes(ctx context.Context, workspace string) (known, looks domain.Mode, err error) {
	t, err := h.question(auth.Principal{}, workspace).turns(ctx)
	return t.Mode, t.Asks, err
}

// bases gathers what the newest revisions of open proposals were made on.
func (u *unit) bases(ctx context.Context, t domain.Tree) (map[string]events.PathState, error) {
	out := map[string]events.PathState{}
	if u.h.OpenProposals == nil {
		return out, nil
	}
	ids, err := fact(u, "open proposals", func() ([]string, error) { return u.h.OpenProposals(ctx, u.caller.Workspace) })
	if err != nil {
		return nil, err
	}
	for _, id := range ids { // oldest first: whatever has changed since the first look, nobody here did
		p, err := load[domain.Proposal](ctx, u, events.ProposalStream(id))
		if err != nil {
			return nil, err
		}
		if !p.Terminal() {
			for path, s := range t.Bases(p.Current()) {
				if _, ok := out[path]; !ok {
					out[path] = s
				}
			}
		}
	}
	return out, nil
}
