package projections

import (
	"path"
	"strings"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// claimView shows claims as they stand at now: one past its expiry has ended,
// whether or not that was written down.
func claimView(_ op.Call, now time.Time) view[wire.Claim] {
	return view[wire.Claim]{
		name: "claim", missing: absent("claim_not_found", "claim"), plural: "claims", from: claims, source: "claims",
		columns: "seq, id, workspace, resource, type, holder, task, rationale, fence, base_state, base_hash, granted_at, expires_at, state, cause, stale",
		created: "granted_at",
		scan: func(s scanner) (seq int64, c wire.Claim, err error) {
			err = s.Scan(&seq, &c.ID, &c.Workspace, &c.Resource, &c.Type, &c.Holder, &c.Task, &c.Rationale, &c.Fence,
				&c.BaseHash.State, &c.BaseHash.Hash, stamp{&c.GrantedAt}, stamp{&c.ExpiresAt}, &c.State, &c.Cause, decoded{&c.Because})
			c.Stale = c.Because != nil
			if c.State == "active" && !now.Before(c.ExpiresAt) {
				c.State, c.Cause = "expired", "ttl"
			}
			return seq, c, err
		},
	}
}

type claimID struct {
	ID string `json:"claim_id"`
}

type claimList struct {
	Page
	Resource string `json:"resource_id,omitempty" jsonschema:"only claims that cover this resource"`
	Holder   string `json:"holder,omitempty" jsonschema:"a principal's id"`
	Task     string `json:"task_id,omitempty"`
	State    string `json:"state,omitempty" jsonschema:"active, expired or released"`
	Type     string `json:"claim_type,omitempty" jsonschema:"read, review, write or exclusive"`
	Stale    *bool  `json:"stale,omitempty" jsonschema:"only claims that are stale, or that are not"`
}

func (r *Reader) claimOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "resource.claim_status", Route: inWorkspace("claims"), Tool: true, May: op.May{Any: true},
			Doc: "List claims as they stand now: who holds what, until when; use it before you claim, or when a claim was refused.",
		}, claimView, claimConds),
		getOp(r, op.Op{
			Name: "claim.get", Route: inWorkspace("claims/{claim_id}"), May: op.May{Any: true},
			Doc: "Show one claim as it stands now.",
		}, claimView, func(_ op.Call, in claimID) string { return in.ID }),
	}
}

func claimConds(c op.Call, in claimList, now time.Time) (where, error) {
	w := here(c)
	w.is("holder", in.Holder)
	w.is("task", in.Task)
	w.is("type", in.Type)
	switch in.State {
	case "active":
		w.add("state = 'active' AND expires_at > ?", nanos(now))
	case "expired":
		w.add("state = 'expired' OR state = 'active' AND expires_at <= ?", nanos(now))
	case "released":
		w.add("state = 'released'")
	}
	if in.Stale != nil {
		w.add("(stale <> 'null') = ?", *in.Stale)
	}
	if in.Resource != "" {
		over, err := covering(in.Resource)
		if err != nil {
			return w, err
		}
		w.add("resource IN (SELECT value FROM json_each(?))", jsonList(over))
	}
	return w, errorsOf(
		oneOf("/state", in.State, "active", "expired", "released"),
		oneOf("/claim_type", in.Type, "read", "review", "write", "exclusive"))
}

// covering returns the resources that hold all of a resource: itself, of a
// symbol its file, and every directory above.
func covering(resource string) ([]string, error) {
	kind, name, ok := strings.Cut(resource, ":")
	file := name
	if kind == "symbol" {
		var symbol string
		file, symbol, ok = strings.Cut(name, "#")
		ok = ok && symbol != ""
	}
	if kind != "file" && kind != "directory" && kind != "symbol" {
		ok = false
	}
	whole := kind == "directory" && file == ""
	if ok = ok && len(file) <= 4096 && (whole || file == path.Clean(file) && file[0] != '/' && file != "." && file != ".." && !strings.HasPrefix(file, "../")); !ok {
		return nil, fault.Errorf(fault.Invalid, "invalid_resource", "%q is no resource: give file:<path>, directory:<path> or symbol:<path>#<name>, with a clean path from the repository's root", short(resource)).
			At("/resource_id", "no resource id")
	}
	over := []string{resource}
	if kind == "symbol" {
		over = append(over, "file:"+file)
	}
	for !whole && strings.Contains(file, "/") {
		file = file[:strings.LastIndexByte(file, '/')]
		over = append(over, "directory:"+file)
	}
	if !whole {
		over = append(over, "directory:")
	}
	return over, nil
}
