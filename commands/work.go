package commands

import (
	"context"
	"time"

	"roundtable/domain"
	"roundtable/events"
)

// CreateTask asks for a piece of work.
type CreateTask struct {
	Title    string `json:"title"`
	Body     string `json:"body_md"`
	Priority *int   `json:"priority,omitempty" jsonschema:"lower goes first; default 100"`
	Risk     string `json:"risk,omitempty" enum:"low,normal,high,critical"`
	Assignee string `json:"assignee,omitempty" jsonschema:"a principal's id; its name is fine too" minlen:"1"`
}

// Name is the command's on the wire.
func (CreateTask) Name() string { return "task.create" }

func (c CreateTask) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	u.ids["task"] = u.id("T")
	t := begin[domain.Task](u, events.TaskStream(u.ids["task"]))
	if c.Assignee != "" {
		d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
		if err != nil {
			return nil, err
		}
		who, err := d.Get(c.Assignee)
		if err != nil {
			return nil, err
		}
		c.Assignee = who.ID
	}
	priority := 100
	if c.Priority != nil {
		priority = *c.Priority
	}
	return t.Create(events.TaskCreated{Task: u.ids["task"], Workspace: u.caller.Workspace, Title: c.Title, Body: c.Body,
		Priority: priority, Risk: c.Risk, Assignee: c.Assignee})
}

// checkTask loads a task that an input names, if it names one.
func (u *unit) checkTask(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	t, err := load[domain.Task](ctx, u, events.TaskStream(id))
	if err != nil {
		return err
	}
	return t.In(u.caller.Workspace, id)
}

// ClaimResource asks for a lease on a file or directory.
type ClaimResource struct {
	Resource  string `json:"resource_id" jsonschema:"file:<path> or directory:<path>"`
	Type      string `json:"claim_type" enum:"read,review,write,exclusive"`
	Task      string `json:"task_id,omitempty"`
	TTL       int    `json:"ttl_seconds,omitempty" jsonschema:"default 900, at most 86400" min:"1" max:"86400"`
	Rationale string `json:"rationale,omitempty"`
}

// Name is the command's on the wire.
func (ClaimResource) Name() string { return "resource.claim" }

func (c ClaimResource) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	r, err := domain.ParseResource(c.Resource)
	if err != nil {
		return nil, err
	}
	if err := u.checkTask(ctx, c.Task); err != nil {
		return nil, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := load[domain.Claims](ctx, u, events.ClaimsStream(u.caller.Workspace))
	if err != nil {
		return nil, err
	}
	wish := domain.ClaimWish{ID: u.id("C"), Workspace: u.caller.Workspace, Holder: u.caller.Who.ID, Task: c.Task,
		Rationale: c.Rationale, Resource: r, Type: c.Type, TTL: time.Duration(c.TTL) * time.Second}
	if _, err := claims.Grant(wish, u.now); err != nil {
		return nil, err // before the files are read
	}
	wish.Base, err = fact(u, "digest "+root+" "+r.ID(), func() (events.BaseHash, error) { return u.h.World.Digest(ctx, root, r) })
	if err != nil {
		return nil, err
	}
	found, seen, err := u.claimed(ctx, root, r, claims)
	if err != nil {
		return nil, err
	}
	wish.Seen = seen
	u.ids["claim"] = wish.ID
	granted, err := claims.Grant(wish, u.now)
	return append(found, granted...), err
}

// ReleaseClaim gives a lease back.
type ReleaseClaim struct {
	Claim string `json:"claim_id"`
}

// Name is the command's on the wire.
func (ReleaseClaim) Name() string { return "resource.release" }

func (c ReleaseClaim) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	claims, err := load[domain.Claims](ctx, u, events.ClaimsStream(u.caller.Workspace))
	if err != nil {
		return nil, err
	}
	u.ids["claim"] = c.Claim
	return claims.Release(u.caller.Workspace, c.Claim, u.caller.Who.ID, u.now)
}
