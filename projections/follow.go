package projections

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"golang.org/x/sync/errgroup"

	"roundtable/events/eventlog"
	"roundtable/internal/sqlite"
)

// Run follows the log until ctx ends, each projector at its own pace. One that
// meets an error that trying again cannot help stops alone, is named by Status
// and goes on when it is rebuilt; the others do not notice.
func (v *Views) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range v.ps {
		g.Go(func() error { return v.run(ctx, p) })
	}
	return g.Wait()
}

// run follows with one projector, again and again, until ctx ends.
func (v *Views) run(ctx context.Context, p Projector) error {
	for ctx.Err() == nil {
		again := v.rebuilt.Next() // taken first: a rebuild meanwhile is not missed
		v.goesOn(p)
		why, err := v.follow(ctx, p)
		switch {
		case ctx.Err() != nil: // told to stop, perhaps while it began
			return nil
		case err != nil:
			return fmt.Errorf("projector %s: %w", p.Name, err)
		case why == nil: // ctx has ended
		case mayHelp(why):
			v.slog.WarnContext(ctx, "a view cannot follow the log and will try again", "view", p.Name, "error", why)
			wait(ctx, again, retryAfter)
		default:
			v.slog.ErrorContext(ctx, "a view has stopped", "view", p.Name, "error", why)
			v.stop(p.Name, why)
			wait(ctx, again, 0)
		}
	}
	return nil
}

// retryAfter is how long a projector rests that could not read the log.
const retryAfter = time.Second

// wait returns at a signal, at the end of ctx, or after d if that is not 0.
func wait(ctx context.Context, signal <-chan struct{}, d time.Duration) {
	var rested <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		rested = timer.C
	}
	select {
	case <-signal:
	case <-rested:
	case <-ctx.Done():
	}
}

// follow runs one projector until ctx ends, or something is in its way that it
// cannot get past: why. It has a router of its own, so that its end is no one
// else's.
func (v *Views) follow(ctx context.Context, p Projector) (why, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := func(why error) { cancel(blocked{why}) }
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout}, watermill.NewSlogLogger(slog.New(loud{v.slog.Handler()})))
	if err != nil {
		return nil, err
	}
	sub := eventlog.NewSubscriber(v.log, func(ctx context.Context, consumer string) (int64, error) {
		return checkpoint(ctx, v.db.Read, consumer)
	}, func(_ string, err error) { end(err) })
	h := router.AddConsumerHandler(p.Name, p.Name, sub, func(m *message.Message) error {
		return v.take(m.Context(), p, eventlog.From(m))
	})
	h.AddMiddleware(v.verdict(p, end), retry.Middleware, middleware.Recoverer)
	if err := errors.Join(router.Run(ctx), sub.Close()); err != nil {
		if mayHelp(err) && ctx.Err() == nil { // its checkpoint could not be read
			return err, nil
		}
		return nil, err
	}
	if b, ok := errors.AsType[blocked](context.Cause(ctx)); ok {
		return b.error, nil
	}
	return nil, nil
}

// closeTimeout is how long a page on its way is waited for. Its tx has been
// told to end by then.
const closeTimeout = 10 * time.Second

// blocked is the cause of the end of a projector's context.
type blocked struct{ error }

var retry = middleware.Retry{
	MaxRetries:      3,
	InitialInterval: 10 * time.Millisecond,
	MaxInterval:     100 * time.Millisecond,
	Multiplier:      3,
	ShouldRetry:     func(p middleware.RetryParams) bool { return mayHelp(p.Err) },

	ResetContextOnRetry: true,
}

// verdict ends p's projector at an error that trying again cannot help. At any
// other the page is delivered again.
func (v *Views) verdict(p Projector, end func(error)) message.HandlerMiddleware {
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			out, err := h(m)
			switch {
			case err == nil || m.Context().Err() != nil: // a cancelled page is not done, and not at fault
			case mayHelp(err):
				v.slog.WarnContext(m.Context(), "a view could not be written and will try again", "view", p.Name, "error", err)
			default:
				end(err)
			}
			return out, err
		}
	}
}

// mayHelp reports whether trying again may help.
func mayHelp(err error) bool {
	return sqlite.Transient(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn)
}
