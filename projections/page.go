package projections

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// Page is what every list takes besides its own filters.
type Page struct {
	Limit         int    `json:"limit,omitempty" jsonschema:"at most so many; 50 if not given" min:"1"`
	Cursor        string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before; the filters must be the same"`
	Order         string `json:"order,omitempty" jsonschema:"newest or oldest first"`
	CreatedAfter  string `json:"created_after,omitempty" jsonschema:"only what was made after this RFC 3339 time"`
	CreatedBefore string `json:"created_before,omitempty" jsonschema:"only what was made before this RFC 3339 time"`
}

func (p *Page) page() *Page { return p }

// paged is the input of a list: a pointer to a struct that embeds Page.
type paged[I any] interface {
	*I
	page() *Page
}

// viewFor makes the view that a caller has at some time.
type viewFor[E any] func(c op.Call, now time.Time) view[E]

// always is the same view for everyone.
func always[E any](v view[E]) viewFor[E] {
	return func(op.Call, time.Time) view[E] { return v }
}

// getOp completes o: the newest state of the entity whose id the input gives.
func getOp[I, E any](r *Reader, o op.Op, v viewFor[E], id func(op.Call, I) string) op.Op {
	name := v(op.Call{}, time.Time{}).name
	o.Out = op.OneOf[E](name, nil)
	return op.Of(o, func(ctx context.Context, c op.Call, in I) (op.Answer, error) {
		e, at, err := show(ctx, r, v(c, r.now()), c.Workspace, id(c, in), c.After)
		return op.Answer{Name: name, Value: e, Position: at}, err
	})
}

// listOp completes o: a list of the entities of a view that meet the
// conditions made from the input.
func listOp[I, E any, P paged[I]](r *Reader, o op.Op, v viewFor[E], conds func(c op.Call, in I, now time.Time) (where, error)) op.Op {
	o.Out = op.ListOf[E](v(op.Call{}, time.Time{}).plural)
	return op.Of(o, func(ctx context.Context, c op.Call, in I) (op.Answer, error) {
		now := r.now()
		w, err := conds(c, in, now)
		if err != nil {
			return op.Answer{}, err
		}
		return pageOf[I, E, P](ctx, r, o.Name, c, in, v(c, now), w, nil)
	})
}

// pageOf reads one page of a list. With also, more is read in the same tx.
func pageOf[I, E any, P paged[I]](ctx context.Context, r *Reader, name string, c op.Call, in I, v view[E], w where, also func(*sql.Tx) error) (op.Answer, error) {
	p := P(&in).page()
	limit, err := r.limit(p.Limit)
	if err != nil {
		return op.Answer{}, err
	}
	if err := errorsOf(oneOf("/order", p.Order, "newest", "oldest"), made(&w, v.created, p)); err != nil {
		return op.Answer{}, err
	}
	order, beyond := "DESC", "seq < ?"
	if p.Order == "" && v.oldestFirst {
		p.Order = "oldest"
	}
	if p.Order == "oldest" {
		order, beyond = "ASC", "seq > ?"
	}
	mark, err := newMark[I, P](name, c.Workspace, in)
	if err != nil {
		return op.Answer{}, err
	}
	if p.Cursor != "" {
		seq, err := mark.seq(p.Cursor)
		if err != nil {
			return op.Answer{}, err
		}
		w.add(beyond, seq)
	}
	a := op.Answer{Name: v.plural, List: true}
	a.Position, err = r.read(ctx, c.After, []Projector{v.from}, func(tx *sql.Tx) error {
		es, seqs, err := v.find(ctx, tx, w, order, limit+1) // one more tells whether a next page is there
		if err != nil {
			return err
		}
		if len(es) > limit {
			es, a.Next = es[:limit], mark.cursor(seqs[limit-1])
		}
		if a.Value = es; also != nil {
			return also(tx)
		}
		return nil
	})
	if es, ok := a.Value.([]E); ok && err == nil && len(es) == 0 && !v.global {
		// Nothing in a workspace, or no such workspace? Who has a role in all
		// may name any.
		_, _, err = show(ctx, r, workspaceView(), "", c.Workspace, a.Position)
	}
	return a, err
}

func (r *Reader) limit(asked int) (int, error) {
	if asked == 0 {
		return r.limits.Page, nil
	}
	if asked < 0 || asked > r.limits.PageMax {
		return 0, fault.Errorf(fault.Invalid, "invalid_field", "limit %d is not between 1 and %d", asked, r.limits.PageMax).At("/limit", "out of bounds")
	}
	return asked, nil
}

// made adds the conditions on the time at which something was made.
func made(w *where, column string, p *Page) error {
	for _, t := range []struct{ pointer, text, cond string }{
		{"/created_after", p.CreatedAfter, column + " > ?"},
		{"/created_before", p.CreatedBefore, column + " < ?"},
	} {
		if t.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, t.text)
		if err != nil {
			return fault.Errorf(fault.Invalid, "invalid_field", "%q is no RFC 3339 time, such as 2026-01-31T12:00:00Z", short(t.text)).At(t.pointer, "no RFC 3339 time")
		}
		w.add(t.cond, clamp(at))
	}
	return nil
}

// clamp is nanos of any time: those too far away to be stored are as far away
// as can be.
func clamp(t time.Time) int64 {
	switch {
	case t.Year() < 1678:
		return -1 << 63
	case t.Year() > 2261:
		return 1<<63 - 1
	}
	return t.UnixNano()
}

// oneOf refuses a value that no entity can have.
func oneOf(pointer, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fault.Errorf(fault.Invalid, "invalid_field", "%s is %q and can be %s", pointer[1:], short(value), strings.Join(allowed, ", ")).At(pointer, "not a known value")
}

// errorsOf returns the first error.
func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A mark makes and checks the cursors of one list with one set of filters.
type mark struct{ about []byte }

func newMark[I any, P paged[I]](name, workspace string, in I) (mark, error) {
	p := P(&in).page() // in is a copy
	p.Limit, p.Cursor = 0, ""
	if p.Order == "" {
		p.Order = "newest"
	}
	about, err := json.Marshal([]any{name, workspace, in})
	return mark{about}, err
}

// cursor names a place: after the entity with seq. It is no secret and guards
// nothing; the sum finds one that is from another list or was altered.
func (m mark) cursor(seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, m.sum(b)...))
}

func (m mark) seq(cursor string) (int64, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != 16 || subtle.ConstantTimeCompare(m.sum(b[:8]), b[8:]) != 1 {
		return 0, fault.Errorf(fault.Invalid, "invalid_cursor", "this cursor is not from this list with these filters; begin again without one").
			At("/cursor", "not next_cursor of the page before")
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func (m mark) sum(place []byte) []byte {
	s := sha256.Sum256(slices.Concat(place, m.about))
	return s[:8]
}
