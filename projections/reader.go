package projections

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// Limits bound what one read may ask for. The zero value stands for the
// defaults.
type Limits struct {
	Wait    time.Duration // at most for a view to reach a position; 5 s
	Page    int           // entities on a page that names no limit; 50
	PageMax int           // that a page may name; 200
}

func (l Limits) orDefaults() Limits {
	if l.Wait <= 0 {
		l.Wait = 5 * time.Second
	}
	if l.PageMax <= 0 {
		l.PageMax = 200
	}
	if l.Page <= 0 {
		l.Page = min(50, l.PageMax)
	}
	return l
}

// A Reader answers questions from the views.
type Reader struct {
	v      *Views
	now    func() time.Time // what the expiry of claims and tokens is judged by
	limits Limits
}

// NewReader returns a reader of v.
func NewReader(v *Views, now func() time.Time, l Limits) *Reader {
	return &Reader{v, now, l.orDefaults()}
}

// Await returns once the named projector has shown all events up to position.
// It waits no longer than the limit; then, and at once if the projector has
// stopped, the fault is Unavailable. A position that the log has not reached
// is Invalid.
func (r *Reader) Await(ctx context.Context, projector string, position int64) error {
	if position < 0 {
		return fault.Errorf(fault.Invalid, "invalid_position", "position %d is negative", position).At("/after", "at least 0")
	}
	var end <-chan time.Time // made only by a read that has to wait
	for {
		moved := r.v.moved.Next()
		at, stopped, err := r.v.progress(ctx, projector)
		if err != nil || at >= position {
			return err
		}
		if stopped != nil {
			return fault.Errorf(fault.Unavailable, "view_stopped", "the view %s has stopped at position %d, before the asked-for %d; an operator must look at the service's status", projector, at, position).
				With("view", projector).With("position", at).With("after", position)
		}
		if end == nil {
			head, _, err := r.v.log.Head(ctx)
			if err != nil {
				return err
			}
			if position > head {
				return fault.Errorf(fault.Invalid, "invalid_position", "position %d is not in the log, whose newest is %d", position, head).
					At("/after", "a position that a command has answered").With("head", head)
			}
			timer := time.NewTimer(r.limits.Wait)
			defer timer.Stop() // reached once: end is set from here on
			end = timer.C
		}
		select {
		case <-moved:
		case <-end:
			return fault.Errorf(fault.Unavailable, "view_behind", "the view %s has reached position %d and not yet %d; ask again", projector, at, position).
				With("view", projector).With("position", at).With("after", position)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read runs f on one snapshot in which every one of ps has shown what was
// written up to after. It returns the position that the snapshot stands for:
// that of the projector furthest behind.
func (r *Reader) read(ctx context.Context, after int64, ps []Projector, f func(tx *sql.Tx) error) (position int64, err error) {
	for _, p := range ps {
		if err := r.Await(ctx, p.Name, after); err != nil {
			return 0, err
		}
	}
	err = r.v.db.InReadTx(ctx, func(tx *sql.Tx) error {
		for i, p := range ps {
			at, err := checkpoint(ctx, tx, p.Name)
			if err != nil {
				return err
			}
			if i == 0 || at < position {
				position = at
			}
		}
		return f(tx)
	})
	return position, err
}

// Show returns the newest state of one entity: "workspace", "principal",
// "token", "task", "claim", "proposal", "approval", "vote", "transaction",
// "test_run" or "validation". It is a value of package wire, with the position it stands for,
// which is not before after. An entity of another workspace is not found; of
// the first three, which belong to none, workspace is not looked at.
func (r *Reader) Show(ctx context.Context, entity, workspace, id string, after int64) (any, int64, error) {
	switch entity {
	case "workspace":
		return boxed(show(ctx, r, workspaceView(), "", id, after))
	case "principal":
		return boxed(show(ctx, r, principalView(), "", id, after))
	case "token":
		return boxed(show(ctx, r, tokenView(op.Call{}, r.now()), "", id, after))
	case "task":
		return boxed(show(ctx, r, taskView(), workspace, id, after))
	case "claim":
		return boxed(show(ctx, r, claimView(op.Call{}, r.now()), workspace, id, after))
	case "proposal":
		return boxed(show(ctx, r, proposalView(), workspace, id, after))
	case "approval":
		return boxed(show(ctx, r, approvalView(), workspace, id, after))
	case "vote":
		return boxed(show(ctx, r, voteView(), workspace, id, after))
	case "transaction":
		return boxed(show(ctx, r, transactionView(), workspace, id, after))
	case "test_run":
		return boxed(show(ctx, r, testRunView(), workspace, id, after))
	case "validation":
		return boxed(show(ctx, r, validationView(), workspace, id, after))
	}
	return nil, 0, errors.New("projections: no entity is called " + entity)
}

func boxed[E any](e E, at int64, err error) (any, int64, error) {
	if err != nil {
		return nil, 0, err
	}
	return e, at, nil
}

func show[E any](ctx context.Context, r *Reader, v view[E], workspace, id string, after int64) (e E, at int64, err error) {
	at, err = r.read(ctx, after, []Projector{v.from}, func(tx *sql.Tx) (err error) {
		e, err = v.one(ctx, tx, workspace, id)
		return err
	})
	return e, at, err
}
