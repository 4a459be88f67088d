package main

import (
	"context"
	"encoding/json"

	"roundtable/commands"
	"roundtable/events/eventlog"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/projections"
)

// operations lists every operation but those of the live stream, which bring
// their own.
func operations(h *commands.Handler, r *projections.Reader, store eventlog.Store) []op.Op {
	ops := append(h.Ops(), r.Ops()...)
	return h.Narrowed(append(ops, verifyOp(store)))
}

// A Verified is what a look over the whole history found.
type Verified struct {
	OK       bool   `json:"ok"`
	Events   int64  `json:"events"`
	FirstBad int64  `json:"first_bad_position,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Detail   string `json:"detail,omitempty"`
	RootHash string `json:"root_hash"`
	HeadHash string `json:"head_hash"`
}

func verified(r eventlog.Report) Verified {
	return Verified{OK: r.OK, Events: r.Events, FirstBad: r.FirstBad, Reason: string(r.Reason), Detail: r.Detail, RootHash: r.Root, HeadHash: r.Head.Hash}
}

func verifyOp(store eventlog.Store) op.Op {
	may := op.May{Roles: []auth.Role{auth.Auditor, auth.Admin}, Everywhere: true}
	return op.Of(op.Op{Name: "log.verify", Route: "GET /api/v1/events/verify", May: may, Shortfall: notVerified,
		Doc: "Read the whole history and check its chain; the first position that is wrong is named."},
		func(ctx context.Context, _ op.Call, _ struct{}) (Verified, error) {
			r, err := eventlog.Verify(ctx, eventlog.Records(ctx, store, 0, 0), eventlog.Point{})
			return verified(r), err
		})
}

// notVerified is the shortfall of a verification: the history is wrong.
func notVerified(answer []byte) *fault.Error {
	var v Verified
	if err := json.Unmarshal(answer, &v); err != nil {
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "the answer cannot be read: %v", err)
	}
	if v.OK {
		return nil
	}
	return fault.Errorf(fault.Conflict, "history_wrong", "position %d is wrong (%s): %s", v.FirstBad, v.Reason, v.Detail)
}
