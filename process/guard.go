package process

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/sony/gobreaker"

	"roundtable/events/eventlog"
)

// guards is what stands around a manager, outermost first: a breaker of its
// own, the parking of events that no try would change, and a few tries. In
// another order an outage would park events that only had to wait.
func guards(consumer string, store Store, lg *slog.Logger, now func() time.Time) []message.HandlerMiddleware {
	breaker := middleware.NewCircuitBreaker(gobreaker.Settings{Name: consumer, Timeout: time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 }})
	retry := middleware.Retry{MaxRetries: 3, InitialInterval: 20 * time.Millisecond, Multiplier: 3, ResetContextOnRetry: true,
		ShouldRetry: func(p middleware.RetryParams) bool {
			return !isPermanent(p.Err) && !errors.Is(p.Err, context.Canceled)
		}}
	return []message.HandlerMiddleware{breaker.Middleware, parking(consumer, store, lg, now), retry.Middleware, middleware.Recoverer}
}

// isPermanent reports whether no later try would change err. A manager is a
// pure function, so a panic in it comes again.
func isPermanent(err error) bool {
	return errors.As(err, new(permanent)) || errors.As(err, new(middleware.RecoveredPanicError))
}

// parking keeps the page whose jobs cannot be made, and goes on behind it:
// React is a pure function of one event, so what follows is not wrong.
func parking(consumer string, store Store, lg *slog.Logger, now func() time.Time) message.HandlerMiddleware {
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			out, err := h(msg)
			if !isPermanent(err) {
				return out, err
			}
			for _, e := range eventlog.From(msg) {
				lg.Error("event parked: its jobs are missing until it is put back", "consumer", consumer, "position", e.Position, "err", err)
				p := eventlog.Parked{Consumer: consumer, Position: e.Position, Error: err.Error(), Tries: 1, Time: now()}
				if err := store.Park(msg.Context(), p); err != nil {
					return nil, err
				}
			}
			page := eventlog.From(msg)
			return nil, store.Enqueue(msg.Context(), consumer, page[len(page)-1].Position, nil)
		}
	}
}
