package main

import (
	"context"
	"errors"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/signal"
)

// A watch tells when principals, roles or tokens change: then open streams
// look again whether they may go on.
type watch struct{ signal.Signal }

// run follows the log from its head until ctx ends.
func (w *watch) run(ctx context.Context, log eventlog.Followed) error {
	at, _, err := log.Head(ctx)
	for err == nil {
		changed := log.Changed()
		var page []events.Record
		if page, err = log.Since(ctx, at, 256); err != nil {
			break
		}
		told := false
		for _, r := range page {
			at = r.Position
			told = told || r.Stream == events.DirectoryStream
		}
		if told {
			w.Send()
		}
		if len(page) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
	if ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed) {
		return nil
	}
	return err
}
