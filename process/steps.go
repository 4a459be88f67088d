package process

import (
	"fmt"
	"sync"
	"time"

	"roundtable/domain"
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

func (s *Steps) begin(r events.TransactionApplyRequested, phase string, now func() time.Time) *steps {
	x := &steps{shared: &s.mu, request: r, now: now}
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
		Status: "completed", Actor: s.request.By, Reason: s.request.Reason, Request: s.request.Request, StartedAt: now, EndedAt: now,
		Inputs: map[string]any{"patch_digest": s.request.PatchDigest, "paths_digest": s.request.PathsDigest, "policy_digest": s.request.PolicyDigest}})
}

func (s *steps) to(phase string) {
	s.shared.Lock()
	defer s.shared.Unlock()
	s.enter(phase)
}

// outcome notes what each phase made, once the change is in the repository.
func (s *steps) outcome(e events.TransactionApplied) {
	s.shared.Lock()
	defer s.shared.Unlock()
	made := map[string]map[string]any{
		"validate": {"before_tree": e.BeforeTree, "before_paths_digest": e.BeforePaths},
		"prepare":  {"files": len(e.Files), "before_paths_digest": e.BeforePaths},
		"apply":    {"files": len(e.Files)},
		"verify":   {"files": len(e.Files), "after_paths_digest": e.AfterPaths},
		"finish":   {"after_tree": e.AfterTree, "after_paths_digest": e.AfterPaths, "files": len(e.Files)},
	}
	for i, p := range s.phases {
		s.phases[i].Outputs = made[p.Phase]
	}
}

// all returns the phases so far, of an attempt that is applied.
func (s *steps) all(recovery string) []events.TransactionPhaseCompleted {
	s.shared.Lock()
	defer s.shared.Unlock()
	last := &s.phases[len(s.phases)-1]
	last.EndedAt, last.RecoveryState = s.now().UTC(), recovery
	return s.phases
}

// failed returns the phases so far, of which the last one failed.
func (s *steps) failed(e events.TransactionFailed) []events.TransactionPhaseCompleted {
	if s == nil {
		return nil
	}
	s.shared.Lock()
	defer s.shared.Unlock()
	reached := map[string]map[string]any{
		"validate": {"before_paths_digest": s.request.PathsDigest},
		"prepare":  {"journal": "durable"},
		"apply":    {"paths": "moved"},
		"verify":   {"paths": "as planned"},
	}
	for i, p := range s.phases {
		s.phases[i].Outputs = reached[p.Phase]
	}
	last := &s.phases[len(s.phases)-1]
	last.EndedAt, last.Status, last.FailureCode = s.now().UTC(), "failed", e.Code
	last.Outputs = map[string]any{"detail": e.Detail, "paths": append([]string{}, e.Paths...)}
	switch {
	case e.Code == domain.NeedsAttention:
		last.RecoveryState = "needs_attention"
	case last.Phase == "validate":
		last.RecoveryState = "nothing_changed"
	default:
		last.RecoveryState = "taken_back"
	}
	return s.phases
}
