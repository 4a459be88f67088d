// Package commands is the only way to change anything: each exported struct
// is a command, and Handler.Do runs it — load the aggregates, ask their rules,
// append what they say happened.
//
// What always holds: a command has one outcome for each actor and key; what a
// decision read is what its append is guarded by, and a refusal is decided again
// if any of it has moved; the clock is read once and
// ids are made once for each command; what is needed from the world of files
// is gathered before the append and stands in the events, so that a replay
// needs no files. A question to the rules loads and decides like a command and
// appends nothing.
package commands

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
	"roundtable/internal/wire"
)

// A Command is a wish. Its decide loads what it needs from u and returns what
// would happen, or nothing if all is as wished already. Its JSON is its input:
// what a repeat under the same key must match.
type Command interface {
	Name() string // as on the wire, such as "proposal.create"
	decide(ctx context.Context, u *unit) ([]events.Payload, error)
}

// Config is what a Handler is made of.
type Config struct {
	Log      eventlog.Store
	World    World
	Policy   policy.Policy
	Now      func() time.Time
	NewID    func() string // a new ULID
	Patience time.Duration // how long a command may be decided again before it gives up; 0 is 10 s
	// MaxWaiting is how many transactions may wait for their turn in one
	// workspace; 0 is 1,000.
	MaxWaiting int
	// Operations names everything that can be asked: a token is narrowed to some
	// of it, and to nothing that is not there.
	Operations func() []string
	// OpenProposals names a workspace's proposals that have not ended, oldest
	// first, as far as the views know; nil: none is known.
	OpenProposals func(ctx context.Context, workspace string) ([]string, error)
	// ForeignChanges reads the newest ones of a workspace once the views hold
	// position after.
	ForeignChanges func(ctx context.Context, workspace string, limit int, after int64) ([]wire.ForeignChange, int64, error)
	// Trouble is told of what could not be done beside a call; nil: nobody is.
	Trouble func(ctx context.Context, what string, err error)
	// Show reads one entity once the views hold position after. It answers the
	// entity and the position it was read at.
	Show func(ctx context.Context, entity, workspace, id string, after int64) (any, int64, error)
	// Later says what transactions have left at the paths since one of the
	// workspace had changed them, the oldest first, of all up to position after.
	// Nil where nobody can say.
	Later func(ctx context.Context, workspace, transaction string, paths []string, after int64) ([]wire.LaterChange, error)
	// Signer signs receipts.
	Signer Signer
}

// A Handler runs commands against one log.
type Handler struct {
	Config
	cache cache
}

// New returns a handler.
func New(c Config) *Handler {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 1000
	}
	return &Handler{Config: c, cache: cache{limit: 4096, entries: map[events.Stream]folded{}}}
}

// A Caller is who sends a command, and around what.
type Caller struct {
	Who         auth.Principal
	Workspace   string // id; "" of what is the server's
	Key         string // idempotency key
	Request     string // id of the request that began it all: the correlation
	Cause       string // id of the event that is reacted to
	Correlation string // "" is Request
}

// System is the caller of what the service does by itself.
func System(workspace, key string) Caller {
	return Caller{Who: auth.Principal{ID: events.System, Name: events.System, Kind: auth.Service}, Workspace: workspace, Key: key}
}

// A Result is what a command came to.
type Result struct {
	Position int64
	IDs      map[string]string // what it made or changed: "proposal" → id
	Repeated bool              // it had run before
}

// Do runs c once for each actor and key: a repeat returns what the first run did.
func (h *Handler) Do(ctx context.Context, by Caller, c Command) (r Result, err error) {
	defer wrap(&err, c)
	digest, err := inputDigest(by.Workspace, c)
	if err != nil {
		return r, err
	}
	g := &gathered{now: h.Now().UTC().Round(0), facts: map[string]any{}}
	defer func() { h.record(ctx, by.Workspace, g.noticed) }()
	deadline := g.now.Add(h.Patience)
	for try := 1; ; try++ {
		b, err := h.decide(ctx, by, c, digest, g, outside{h.Log}, nil)
		if err != nil && try < maxRefusals && h.Now().Before(deadline) && h.torn(ctx, b.Expect, err) {
			g.facts = map[string]any{}
			continue
		}
		if err != nil {
			return h.repeated(ctx, by, digest, err)
		}
		o, err := h.Log.Append(ctx, b, func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
			return h.decide(ctx, by, c, digest, g, v, v.Memo())
		})
		if errors.Is(err, eventlog.ErrMoved) && h.Now().Before(deadline) {
			g.facts = map[string]any{}
			continue
		}
		if err != nil {
			return h.repeated(ctx, by, digest, unavailable(err))
		}
		return result(o, digest)
	}
}

// maxRefusals bounds how often a command that is refused is decided again.
const maxRefusals = 16

// torn reports whether something that a refusal rests on has moved since it
// was read: what was read after may not go with it. An append is guarded
// against that; a refusal appends nothing.
func (h *Handler) torn(ctx context.Context, seen map[events.Stream]int64, refused error) bool {
	if fault.KindOf(refused) == fault.Internal {
		return false
	}
	for s, version := range seen {
		if since, err := h.Log.Stream(ctx, s, version); err == nil && len(since) > 0 {
			return true
		}
	}
	return false
}

// repeated answers a command that was refused with what it did when it ran
// before: after that the same decision may well be refused. One that is
// decided alike meets its stored outcome in the append.
func (h *Handler) repeated(ctx context.Context, by Caller, digest []byte, refused error) (Result, error) {
	o, done, err := h.Log.Outcome(ctx, by.Who.ID, by.Key)
	switch {
	case err != nil:
		return Result{}, errors.Join(refused, err)
	case !done:
		return Result{}, refused
	}
	o.Repeated = true
	return result(o, digest)
}

// decide makes one decision, on the view v. Inside a group memo is not nil,
// and nothing may be gathered from the world any more. What it has read stands
// in Expect, also of a refusal.
func (h *Handler) decide(ctx context.Context, by Caller, c Command, digest []byte, g *gathered, v eventlog.View, memo map[events.Stream]any) (b eventlog.Batch, err error) {
	u := &unit{h: h, caller: by, now: g.now, view: v, memo: memo, gathered: g, seen: map[events.Stream]int64{}, ids: map[string]string{}}
	b.Expect = u.seen
	happened, err := c.decide(ctx, u)
	if err != nil {
		return b, err
	}
	if happened, err = u.follow(ctx, happened); err != nil {
		return b, err
	}
	for i := range happened {
		happened[i] = redacted(happened[i])
	}
	answer, err := json.Marshal(u.ids)
	if err != nil {
		return b, err
	}
	m := events.Meta{Workspace: by.Workspace, Actor: by.Who.ID, Command: by.Key, Cause: by.Cause, Correlation: by.Correlation}
	switch {
	case u.request != "":
		m.Correlation = u.request
	case m.Correlation == "":
		m.Correlation = by.Request
	}
	return eventlog.Batch{Meta: m, Digest: digest, Expect: u.seen, Happened: happened, Answer: answer}, nil
}

func inputDigest(workspace string, c Command) ([]byte, error) {
	var wish any = c
	if w, ok := c.(interface{ wish() any }); ok {
		wish = w.wish()
	}
	input, err := json.Marshal(wish)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", c.Name(), workspace)
	sum.Write(input)
	return sum.Sum(nil), nil
}

func result(o eventlog.Outcome, digest []byte) (r Result, err error) {
	if !bytes.Equal(o.Digest, digest) {
		return r, fault.Errorf(fault.Conflict, "idempotency_key_reused", "this idempotency key was used for another call; a new wish needs a new key")
	}
	r = Result{Position: o.Position, Repeated: o.Repeated}
	return r, json.Unmarshal(o.Answer, &r.IDs)
}

// unavailable turns what a store may say under load into a fault.
func unavailable(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrMoved), errors.Is(err, eventlog.ErrFull):
		return fault.Errorf(fault.Unavailable, "busy", "too many commands are waiting; send it again under the same key")
	case errors.Is(err, eventlog.ErrClosed):
		return fault.Errorf(fault.Unavailable, "shutting_down", "the service is stopping; send it again under the same key")
	case errors.Is(err, eventlog.ErrUnknown):
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "whether this was done could not be learned; send it again under the same key, which tells")
	}
	return err
}

// wrap names the command in an error that is not meant for its sender.
func wrap(err *error, c Command) {
	if *err != nil && fault.KindOf(*err) == fault.Internal {
		*err = fmt.Errorf("%s: %w", c.Name(), *err)
	}
}

// Authenticate returns whoever the token stands for, as of now.
func (h *Handler) Authenticate(ctx context.Context, token string) (auth.Principal, error) {
	u := h.question(auth.Principal{}, "")
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return auth.Principal{}, err
	}
	return d.Authenticate(token, u.now)
}

// outside is the log as a decision sees it that is not made in a group.
type outside struct{ eventlog.Store }

// Memo is nil.
func (outside) Memo() map[events.Stream]any { return nil }

// question returns a unit that reads the log as it is and appends nothing.
func (h *Handler) question(who auth.Principal, workspace string) *unit {
	return &unit{h: h, caller: Caller{Who: who, Workspace: workspace}, now: h.Now().UTC().Round(0), view: outside{h.Log},
		gathered: &gathered{facts: map[string]any{}}, seen: map[events.Stream]int64{}, ids: map[string]string{}}
}
