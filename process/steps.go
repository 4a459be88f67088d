package process

import (
	"fmt"
	"sync"
	"time"

	"roundtable/events"
	"roundtable/internal/repo"
)

// Steps hears at which step the writer is and turns that into phases.
type Steps struct {
	mu   sync.Mutex
	runs map[string]*steps
}

// NewSteps returns one that hears nothing yet. Its Step goes into the options
// of the workspaces.
func NewSteps() *Steps { return &Steps{runs: map[string]*steps{}} }

// Step is told of each step before it is done.
func (s *Steps) Step(st repo.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[key(st.Tx, st.Attempt)]; r != nil && st.Phase != repo.Back {
		r.enter(string(st.Phase))
	}
}

func key(tx string, attempt int) string { return fmt.Sprintf("%s.%d", tx, attempt) }

func (s *Steps) begin(r events.TransactionApplyRequested, actor, phase string, now func() time.Time) *steps {
	x := &steps{shared: &s.mu, request: r, actor: actor, now: now}
	x.enter(phase)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[key(r.Transaction, r.Attempt)] = x
	return x
}

func (s *Steps) of(r events.TransactionApplyRequested) *steps {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[key(r.Transaction, r.Attempt)]
}

func (s *Steps) end(r events.TransactionApplyRequested) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, key(r.Transaction, r.Attempt))
}

// steps are the phases of one attempt.
type steps struct {
	shared  *sync.Mutex
	request events.TransactionApplyRequested
	actor   string
	now     func() time.Time
	phases  []events.TransactionPhaseCompleted
}

// order lists the phases a worker goes through.
var order = map[string]int{"validate": 1, "prepare": 2, "apply": 3, "verify": 4, "finish": 5}

// enter ends the phase that runs and begins the next; a phase that is over
// does not begin again.
func (s *steps) enter(phase string) {
	now := s.now().UTC()
	if n := len(s.phases); n > 0 {
		last := &s.phases[n-1]
		if order[phase] <= order[last.Phase] {
			return
		}
		last.EndedAt = now
	}
	s.phases = append(s.phases, events.TransactionPhaseCompleted{Transaction: s.request.Transaction, Attempt: s.request.Attempt, Phase: phase,
		Status: "completed", Actor: s.actor, Reason: s.request.Reason, StartedAt: now, EndedAt: now,
		Inputs: map[string]any{"patch_digest": s.request.PatchDigest, "paths_digest": s.request.PathsDigest}})
}

func (s *steps) to(phase string) {
	s.shared.Lock()
	defer s.shared.Unlock()
	s.enter(phase)
}

// all returns the phases so far. With a failure code the last one failed.
func (s *steps) all(failure, recovery string) []events.TransactionPhaseCompleted {
	if s == nil {
		return nil
	}
	s.shared.Lock()
	defer s.shared.Unlock()
	last := &s.phases[len(s.phases)-1]
	last.EndedAt, last.RecoveryState = s.now().UTC(), recovery
	if failure != "" {
		last.Status, last.FailureCode = "failed", failure
	}
	return s.phases
}
