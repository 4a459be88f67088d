package testy

import (
	"encoding/json"
	"fmt"

	"roundtable/internal/acp"
)

// router serves a connection until an initialize has chosen its version.
func (a *Agent) router(c *acp.Call) {
	switch {
	case c.Kind == acp.Notification:
		a.v1.log.Info("notification before initialize ignored", "method", c.Method)
		return
	case c.Method != "initialize":
		c.Reply(nil, acp.NewError(acp.CodeInvalidRequest, "first ACP request must be initialize"))
		return
	}
	requested, ok := requestedVersion(c.Params)
	if !ok {
		c.Reply(nil, acp.InvalidParams("initialize.protocolVersion must be a valid ACP protocol version"))
		return
	}
	p, version, next := &a.v1.peer, 1, a.v1.handle
	switch {
	case requested == 0:
		c.Reply(nil, unsupportedVersion(a.opts.Draft, 0, 1, 2))
		return
	case requested >= 2:
		p, version, next = &a.v2.peer, 2, a.v2.handle
	}
	if err := p.use(version, a.opts.Draft == "next"); err != nil {
		c.Reply(nil, err)
		return
	}
	m, _ := p.set.Method("agent", "initialize")
	if _, err := m.Params.Clean(c.Params); err != nil {
		c.Reply(nil, acp.InvalidParams("invalid initialize params: %v", err))
		return
	}
	a.route = next
	next(c)
}

// requestedVersion is the protocolVersion of initialize params.
func requestedVersion(params json.RawMessage) (uint16, bool) {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil {
		return 0, false
	}
	var n *uint16
	if json.Unmarshal(p["protocolVersion"], &n) != nil || n == nil {
		return 0, false
	}
	return *n, true
}

// unsupportedVersion is the error for a version that no supported one answers.
func unsupportedVersion(draft string, requested uint16, supported ...int) error {
	if draft == "next" {
		return acp.NewError(acp.CodeUnsupportedVersion, struct {
			Requested uint16 `json:"requested"`
			Supported []int  `json:"supported"`
		}{requested, supported})
	}
	which := fmt.Sprintf("version %d", supported[0])
	if len(supported) > 1 {
		which = fmt.Sprintf("versions %d and %d", supported[0], supported[1])
	}
	return acp.NewError(acp.CodeInvalidRequest,
		fmt.Sprintf("unsupported ACP protocol version %d; this endpoint supports ACP protocol %s", requested, which))
}
