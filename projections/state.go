package projections

import (
	"context"
	"database/sql"
	"time"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// stateMax bounds each list of a State. The list operations have the rest.
const stateMax = 50

// A State is a workspace as one caller needs it to go on.
type State struct {
	Workspace    wire.Workspace     `json:"workspace"`
	Head         int64              `json:"head_position"` // newest of the log when it was asked
	Me           Me                 `json:"me"`
	Claims       []wire.Claim       `json:"claims"`       // mine, that are alive
	Proposals    []ProposalSummary  `json:"proposals"`    // that are open, newest first
	NeedsMe      []Need             `json:"needs_me"`     // what waits for me
	Transactions []TransactionBrief `json:"transactions"` // that have not ended
	Truncated    []string           `json:"truncated"`    // names of the lists above that hold only their first 50
}

// Me is the caller.
type Me struct {
	Principal string      `json:"principal_id"`
	Name      string      `json:"name"`
	Kind      string      `json:"kind"`
	Owner     string      `json:"owner"`
	Roles     []auth.Role `json:"roles"` // in this workspace, as granted
}

// A ProposalSummary is a proposal in a list of many.
type ProposalSummary struct {
	ID            string    `json:"proposal_id"`
	Title         string    `json:"title"`
	Author        string    `json:"author"`
	Status        string    `json:"status"`
	Risk          string    `json:"effective_risk"`
	Revision      int       `json:"revision"`
	VoteState     string    `json:"vote_state"`
	ApprovalState string    `json:"approval_state"`
	TxState       string    `json:"transaction_state"`
	Transaction   string    `json:"transaction_id,omitempty"`
	UpdatedAt     time.Time `json:"updated_at"`
}

// A TransactionBrief is a transaction in a list of many.
type TransactionBrief struct {
	ID       string    `json:"transaction_id"`
	Proposal string    `json:"proposal_id"`
	State    string    `json:"state"`
	OpenedBy string    `json:"opened_by"`
	OpenedAt time.Time `json:"opened_at"`
}

// A Need is something that waits for the caller.
type Need struct {
	Kind     string     `json:"kind"` // vote, approval or revision
	Proposal string     `json:"proposal_id,omitempty"`
	Approval string     `json:"approval_id,omitempty"`
	Title    string     `json:"title"`
	Why      string     `json:"why"`
	Next     fault.Step `json:"next"` // the call to begin with
}

func (r *Reader) stateOps() []op.Op {
	return []op.Op{op.Of(op.Op{
		Name: "table.get_state", Route: inWorkspace("state"), Tool: true, May: op.May{Any: true},
		Doc: "Show where the workspace stands and what waits for you; call it first, and whenever you have lost the thread.",
		Out: op.OneOf[State]("state", nil),
	}, func(ctx context.Context, c op.Call, _ struct{}) (op.Answer, error) {
		s, at, err := r.state(ctx, c)
		return op.Answer{Name: "state", Value: s, Position: at}, err
	})}
}

func (r *Reader) state(ctx context.Context, c op.Call) (State, int64, error) {
	s := State{Me: meOf(c), Claims: []wire.Claim{}, Proposals: []ProposalSummary{}, NeedsMe: []Need{}, Transactions: []TransactionBrief{}, Truncated: []string{}}
	from := []Projector{workspaces, principals, claims, proposals, transactions}
	at, err := r.read(ctx, c.After, from, func(tx *sql.Tx) (err error) {
		if s.Workspace, err = workspaceView().one(ctx, tx, "", c.Workspace); err != nil {
			return err
		}
		if s.Claims, err = r.myClaims(ctx, tx, c, &s); err != nil {
			return err
		}
		if err := openProposals(ctx, tx, c, &s); err != nil {
			return err
		}
		if err := needs(ctx, tx, c, &s); err != nil {
			return err
		}
		return running(ctx, tx, c, &s)
	})
	if err != nil {
		return State{}, 0, err
	}
	s.Head, _, err = r.v.log.Head(ctx)
	return s, at, err
}

func meOf(c op.Call) Me {
	me := Me{Principal: c.Who.ID, Name: c.Who.Name, Kind: string(c.Who.Kind), Owner: c.Who.Owner, Roles: []auth.Role{}}
	for _, role := range auth.Roles {
		for _, g := range c.Who.Grants {
			if g.Role == role && (g.Workspace == c.Workspace || g.Workspace == auth.AllWorkspaces) {
				me.Roles = append(me.Roles, role)
				break
			}
		}
	}
	return me
}

// few keeps the first stateMax, and says if there were more.
func few[E any](s *State, name string, es []E) []E {
	if len(es) <= stateMax {
		return es
	}
	s.Truncated = append(s.Truncated, name)
	return es[:stateMax]
}

func (r *Reader) myClaims(ctx context.Context, tx *sql.Tx, c op.Call, s *State) ([]wire.Claim, error) {
	now := r.now()
	w, err := claimConds(c, claimList{Holder: c.Who.ID, State: "active"}, now)
	if err != nil {
		return nil, err
	}
	cs, _, err := claimView(c, now).find(ctx, tx, w, "DESC", stateMax+1)
	return few(s, "claims", cs), err
}

// open is the condition that a proposal has not come to its end.
const open = "status IN ('pending', 'in_review', 'revision_requested')"

func openProposals(ctx context.Context, tx *sql.Tx, c op.Call, s *State) error {
	w := here(c)
	w.add(open)
	ps, _, err := briefProposalView().find(ctx, tx, w, "DESC", stateMax+1)
	for _, p := range few(s, "proposals", ps) {
		s.Proposals = append(s.Proposals, ProposalSummary{p.ID, p.Title, p.Author, p.Status, p.EffectiveRisk, p.Revision,
			p.VoteState, p.ApprovalState, p.TxState, p.Transaction, p.UpdatedAt})
	}
	return err
}

func running(ctx context.Context, tx *sql.Tx, c op.Call, s *State) error {
	w := here(c)
	w.add("state IN ('pending', 'staged', 'applying')")
	ts, _, err := transactionView().find(ctx, tx, w, "DESC", stateMax+1)
	for _, t := range few(s, "transactions", ts) {
		s.Transactions = append(s.Transactions, TransactionBrief{t.ID, t.Proposal, t.State, t.OpenedBy, t.OpenedAt})
	}
	return err
}
