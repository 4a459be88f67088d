package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"roundtable/internal/acp"
)

type object = map[string]any

// initialize offers the latest version and what this client can do, in the
// words of every version that may be agreed on.
func (c *Client) initialize(ctx context.Context) error {
	latest := slices.Max(c.cfg.Versions)
	info := object{"name": c.cfg.Name, "version": c.cfg.Version}
	elicitation := object{}
	if c.cfg.Elicit != nil {
		elicitation = object{"form": object{}, "url": object{}}
	}
	params := object{"protocolVersion": latest}
	if slices.Contains(c.cfg.Versions, 1) {
		caps := object{
			"fs": object{"readTextFile": c.cfg.Files, "writeTextFile": c.cfg.Files}, "terminal": c.cfg.Terminals,
		}
		if c.cfg.Elicit != nil {
			caps["elicitation"] = elicitation
		}
		params["clientCapabilities"], params["clientInfo"] = caps, info
	}
	if latest >= 2 {
		caps := object{}
		if c.cfg.Elicit != nil {
			caps["elicitation"] = elicitation
		}
		params["capabilities"], params["info"] = caps, info
	}
	raw, err := c.call(ctx, c.cfg.StartLimit, "initialize", params, c.agreed)
	if refusal, ok := errors.AsType[*acp.Error](err); ok {
		reason := Refused
		if refusal.Code == acp.CodeUnsupportedVersion {
			reason = RefusedVersion
		}
		return &EndError{Reason: reason, Err: refusal}
	}
	if err != nil {
		return err
	}
	if c.version == 0 {
		return &EndError{Reason: BrokenProtocol, Err: fmt.Errorf("initialize was answered with %s", raw)}
	}
	if !slices.Contains(c.cfg.Versions, c.version) {
		return &EndError{Reason: RefusedVersion, Err: fmt.Errorf(
			"the agent speaks protocol version %d; this client asked for %d and supports %v", c.version, latest, c.cfg.Versions)}
	}
	return nil
}

// agreed reads the answer before any later message is handled.
func (c *Client) agreed(raw json.RawMessage, err error) {
	if err != nil {
		return
	}
	type info struct{ Name, Title, Version string }
	var r struct {
		ProtocolVersion   int             `json:"protocolVersion"`
		AgentCapabilities json.RawMessage `json:"agentCapabilities"`
		Capabilities      json.RawMessage `json:"capabilities"`
		AgentInfo         *info           `json:"agentInfo"`
		Info              *info           `json:"info"`
		AuthMethods       []struct {
			ID       string `json:"id"`
			MethodID string `json:"methodId"`
		} `json:"authMethods"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	c.version = r.ProtocolVersion
	c.agent = Agent{Version: r.ProtocolVersion, Capabilities: r.AgentCapabilities}
	who := r.AgentInfo
	if r.ProtocolVersion >= 2 {
		c.agent.Capabilities, who = r.Capabilities, r.Info
	}
	if who != nil {
		c.agent.Name, c.agent.Title, c.agent.Release = who.Name, who.Title, who.Version
	}
	for _, m := range r.AuthMethods {
		c.agent.AuthMethods = append(c.agent.AuthMethods, m.ID+m.MethodID)
	}
}

// Can reports whether the agent has a capability: a property of its
// capabilities that is true or an object, by the path to it.
func (a Agent) Can(path ...string) bool {
	raw := a.Capabilities
	for _, name := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return false
		}
		raw = o[name]
	}
	return len(raw) > 0 && (raw[0] == '{' || string(raw) == "true")
}
