package projections

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// A scene is a small history with names that tests can speak of.
type scene struct {
	*testing.T
	log *memLog
	v   *Views
	r   *Reader
	now time.Time
}

func (s *scene) add(ps ...events.Payload) int64 {
	s.now = s.now.Add(time.Minute)
	return s.log.add(s.now, ps...)
}

// upToDate lets the views show all there is.
func (s *scene) upToDate() { s.Helper(); s.v.catchUp(s.Context(), s, 100) }

func newScene(t *testing.T) *scene {
	v, log := newViews(t)
	s := &scene{T: t, log: log, v: v, now: epoch}
	s.r = NewReader(v, func() time.Time { return s.now }, Limits{})
	for _, ws := range []string{"WS-1", "WS-2"} {
		s.add(events.WorkspaceAdded{Workspace: ws, Name: ws, Root: "/srv/" + ws, Kind: "git"})
	}
	for _, p := range []events.PrincipalCreated{
		{Principal: "ann", Kind: "human"}, {Principal: "bot", Kind: "agent", Owner: "ann"}, {Principal: "bot2", Kind: "agent", Owner: "ann"},
		{Principal: "eve", Kind: "human"}, {Principal: "eves", Kind: "agent", Owner: "eve"},
	} {
		p.Name = p.Principal
		if p.Owner == "" {
			p.Owner = p.Principal
		}
		s.add(p)
	}
	s.add(events.RoleGranted{Principal: "ann", Workspace: "*", Role: "admin"},
		events.RoleGranted{Principal: "bot", Workspace: "WS-1", Role: "implementer"},
		events.RoleGranted{Principal: "bot2", Workspace: "WS-1", Role: "reviewer"},
		events.RoleGranted{Principal: "eves", Workspace: "WS-1", Role: "reviewer"},
		events.RoleGranted{Principal: "eve", Workspace: "WS-2", Role: "reviewer"},
		events.RoleGranted{Principal: "eve", Workspace: "WS-1", Role: "viewer"})
	s.add(events.TokenIssued{Token: "TK-1", Principal: "ann", Hash: "secret-hash", ExpiresAt: epoch.Add(time.Hour * 9)},
		events.TokenIssued{Token: "TK-2", Principal: "bot", ExpiresAt: epoch.Add(time.Second)},
		events.TokenIssued{Token: "TK-3", Principal: "bot", ExpiresAt: epoch.Add(time.Hour)}, events.TokenRevoked{Token: "TK-3"})
	s.add(events.TaskCreated{Task: "T-1", Workspace: "WS-1", Title: "one", Risk: "low", Assignee: "bot"},
		events.TaskCreated{Task: "T-2", Workspace: "WS-2", Title: "two", Risk: "high"})
	s.claim("C-1", "file:a/b.go", "bot", time.Hour)
	s.claim("C-2", "directory:a", "eve", time.Second)
	s.claim("C-3", "directory:", "bot2", time.Hour)
	s.add(events.ClaimReleased{Claim: "C-3", Workspace: "WS-1", Cause: "holder"})
	s.propose("P-1", "bot", "Parse É better", "a/b.go")
	s.propose("P-2", "ann", "Other", "c.go")
	s.add(events.ProposalReviewRequested{Proposal: "P-1", Revision: 1, By: "bot"})
	return s
}

func (s *scene) claim(id, resource, holder string, ttl time.Duration) {
	s.add(events.ClaimGranted{Claim: id, Workspace: "WS-1", Resource: resource, Type: "write", Holder: holder, Fence: 1, GrantedAt: s.now, ExpiresAt: s.now.Add(ttl)})
}

func (s *scene) propose(id, author, title, path string) {
	s.add(events.ProposalCreated{Proposal: id, Workspace: "WS-1", Task: "T-1", Author: author, Title: title, Summary: "for " + id, Risk: "normal"}, s.revision(id, 1, author, path))
}

func (s *scene) revision(id string, n int, by, path string) events.Payload {
	return events.ProposalRevisionAttached{Proposal: id, Risk: "normal", Number: n, PatchDigest: id, Files: []events.PatchedFile{{Op: "rename", Path: path, OldPath: "was/" + path}}, AttachedBy: by}
}

func (s *scene) vote(id, proposal, voter, choice string, revision int) {
	s.add(events.VoteCast{Vote: id, Proposal: proposal, Voter: voter, Choice: choice, Revision: revision, Reason: "r"})
}

// who are the callers, as a directory would make them of the scene's roles.
func who(name string) auth.Principal {
	p := auth.Principal{ID: name, Name: name, Kind: auth.Human, Owner: name}
	switch name {
	case "ann":
		p.Grants = []auth.Grant{{Workspace: "*", Role: auth.Admin}}
	case "bot":
		p.Kind, p.Owner, p.Grants = auth.Agent, "ann", []auth.Grant{{Workspace: "WS-1", Role: auth.Implementer}}
	case "bot2":
		p.Kind, p.Owner, p.Grants = auth.Agent, "ann", []auth.Grant{{Workspace: "WS-1", Role: auth.Reviewer}}
	case "eves":
		p.Kind, p.Owner, p.Grants = auth.Agent, "eve", []auth.Grant{{Workspace: "WS-1", Role: auth.Reviewer}}
	case "eve":
		p.Grants = []auth.Grant{{Workspace: "WS-2", Role: auth.Reviewer}, {Workspace: "WS-1", Role: auth.Viewer}}
	}
	return p
}

func opNamed(t fatal, r *Reader, name string) op.Op {
	t.Helper()
	ops := r.Ops()
	i := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("no op %s", name)
	}
	return ops[i]
}

// ask runs an op as a transport would, and returns its answer's members.
func ask(ctx context.Context, t fatal, r *Reader, name string, c op.Call, in any) (map[string]json.RawMessage, error) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := opNamed(t, r, name).Run(ctx, c, body)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m, nil
}

func (s *scene) ask(name, caller, ws string, in any) map[string]json.RawMessage {
	s.Helper()
	m, err := ask(s.Context(), s, s.r, name, op.Call{Who: who(caller), Workspace: ws}, in)
	if err != nil {
		s.Fatalf("%s: %v", name, err)
	}
	return m
}

// refused returns the code of the fault.
func (s *scene) refused(name, caller, ws string, in any) string {
	s.Helper()
	m, err := ask(s.Context(), s, s.r, name, op.Call{Who: who(caller), Workspace: ws}, in)
	if err == nil {
		s.Fatalf("%s %v: answered %s", name, in, m)
	}
	if len(err.Error()) > 500 {
		s.Errorf("%s: an error of %d bytes", name, len(err.Error()))
	}
	return fault.CodeOf(err)
}

type obj = map[string]any

// values returns one field of each entity of a list.
func values(t fatal, list json.RawMessage, field string) []string {
	t.Helper()
	var es []map[string]any
	if err := json.Unmarshal(list, &es); err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, e := range es {
		id, ok := e[field].(string)
		if !ok {
			t.Fatalf("no %s in %v", field, e)
		}
		ids = append(ids, id)
	}
	return ids
}
