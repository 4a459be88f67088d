package client

import (
	"context"
	"encoding/json"
	"slices"

	"roundtable/internal/acp"
)

// An Option is one way to answer a request for permission.
type Option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"` // allow_once, allow_always, reject_once, reject_always or unknown
}

// A Permission is a request for permission.
type Permission struct {
	Session  string
	Title    string
	ToolCall string // its id; "" if it is about none
	Options  []Option
	Raw      json.RawMessage
}

// A Decision answers a request: with an option by its id, or with no.
type Decision struct {
	Option string
	No     bool
}

// A Policy decides. It may take its time, but returns when ctx ends: then the
// turn has been cancelled, and its decision no longer counts.
type Policy func(ctx context.Context, p Permission) Decision

// Deny says no to everything.
func Deny(context.Context, Permission) Decision { return Decision{No: true} }

// Allow takes the first option that allows, once if it can; without one it
// says no.
func Allow(_ context.Context, p Permission) Decision {
	for _, kind := range []string{"allow_once", "allow_always"} {
		if i := slices.IndexFunc(p.Options, func(o Option) bool { return o.Kind == kind }); i >= 0 {
			return Decision{Option: p.Options[i].ID}
		}
	}
	return Decision{No: true}
}

// First takes the first option, whatever it is.
func First(_ context.Context, p Permission) Decision {
	if len(p.Options) == 0 {
		return Decision{No: true}
	}
	return Decision{Option: p.Options[0].ID}
}

// Pick takes the option with an id if it is offered; else it says no.
func Pick(id string) Policy {
	return func(_ context.Context, p Permission) Decision {
		return Decision{Option: id, No: !slices.ContainsFunc(p.Options, func(o Option) bool { return o.ID == id })}
	}
}

type outcome struct {
	Outcome  string `json:"outcome"`
	OptionID string `json:"optionId,omitempty"`
}

type permissionResult struct {
	Outcome outcome `json:"outcome"`
}

// permission asks the policy. A no takes an option that rejects; where there
// is none, it cancels the turn, for only a cancelled turn has the outcome
// cancelled.
func (c *Client) permission(ctx context.Context, raw json.RawMessage) (any, error) {
	type toolCall struct {
		ID    string `json:"toolCallId"`
		Title string `json:"title"`
	}
	p, err := params[struct {
		SessionID string   `json:"sessionId"`
		Title     string   `json:"title"`
		ToolCall  toolCall `json:"toolCall"`
		Subject   struct {
			ToolCall toolCall `json:"toolCall"`
		} `json:"subject"`
		Options []Option `json:"options"`
	}](raw, "sessionId", "options")
	if err != nil {
		return nil, err
	}
	ask := Permission{Session: p.SessionID, Title: p.Title, ToolCall: p.ToolCall.ID + p.Subject.ToolCall.ID, Options: p.Options, Raw: raw}
	if ask.Title == "" {
		ask.Title = p.ToolCall.Title
	}
	decided := make(chan Decision, 1)
	c.conn.Go(func(context.Context) { decided <- c.cfg.Permission(ctx, ask) })
	var d Decision
	select {
	case d = <-decided:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return permissionResult{outcome{Outcome: "cancelled"}}, nil
	}
	if !d.No {
		return permissionResult{outcome{"selected", d.Option}}, nil
	}
	for _, kind := range []string{"reject_once", "reject_always"} {
		if i := slices.IndexFunc(p.Options, func(o Option) bool { return o.Kind == kind }); i >= 0 {
			return permissionResult{outcome{"selected", p.Options[i].ID}}, nil
		}
	}
	c.mu.Lock()
	s := c.sessions[p.SessionID]
	c.mu.Unlock()
	if s == nil {
		return nil, acp.InvalidParams("unknown session `%s`", p.SessionID)
	}
	s.Cancel()
	return permissionResult{outcome{Outcome: "cancelled"}}, nil
}
