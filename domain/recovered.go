package domain

import (
	"slices"
	"unicode/utf8"

	"roundtable/events"
)

// What a recovery finds: see events.TransactionRecovered.
const (
	FoundNothing    = "nothing_begun"
	FoundRolledBack = "rolled_back"
	FoundCommitted  = "committed"
	FoundAttention  = "attention"
)

const (
	maxRecovered = 100 // stuck paths, and kept versions, of one event
	maxWhy       = 500 // bytes of a reason
)

// RecordRecovered takes the word on what a recovery found. Nothing is said of
// an attempt that the log does not know, of what it says already, and of a
// folder whose content has been told and that is only being removed.
func (t Transaction) RecordRecovered(e events.TransactionRecovered) []events.Payload {
	if t.ID == "" || e.Attempt > t.Attempt || e.Found == FoundCommitted && t.State == TxApplied {
		return nil
	}
	e = bounded(e)
	last := t.Recovered
	if last.Transaction != "" && last.Attempt == e.Attempt {
		stays := e.Found == FoundCommitted || e.Found == FoundAttention
		same := last.Found == e.Found && slices.Equal(last.Stuck, e.Stuck) && last.More == e.More
		switch {
		case same && (stays || last.Folder == e.Folder):
			return nil
		case last.Folder == e.Folder && last.Found != FoundAttention:
			return nil // what is left of a folder whose end was told
		}
	}
	return []events.Payload{e}
}

// bounded is e with no more than an event may hold.
func bounded(e events.TransactionRecovered) events.TransactionRecovered {
	stuck, kept := e.Stuck[:min(len(e.Stuck), maxRecovered)], e.Kept[:min(len(e.Kept), maxRecovered)]
	e.More = len(e.Stuck) - len(stuck) + len(e.Kept) - len(kept)
	e.Stuck, e.Kept = slices.Clone(stuck), kept
	for i, s := range e.Stuck {
		n := min(len(s.Reason), maxWhy)
		for n > 0 && n < len(s.Reason) && !utf8.RuneStart(s.Reason[n]) {
			n--
		}
		e.Stuck[i].Reason = s.Reason[:n]
	}
	return e
}
