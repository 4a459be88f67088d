package mcp

import (
	"crypto/rand"
	"errors"
	"sync"
)

// sessions names the sessions of the older era and remembers whose each is.
// It is the library's session manager: what the library ends or sweeps is
// forgotten here too.
type sessions struct {
	mu    sync.Mutex
	owner map[string]string // by id; "" until the first answer of the session is sent
	count map[string]int    // by owner
}

func newSessions() *sessions {
	return &sessions{owner: map[string]string{}, count: map[string]int{}}
}

// Generate makes an id, which nobody owns yet.
func (s *sessions) Generate() string {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner[id] = ""
	return id
}

// Validate refuses an id that is not open.
func (s *sessions) Validate(id string) (isTerminated bool, err error) {
	if _, known := s.of(id); !known {
		return false, errors.New("unknown session")
	}
	return false, nil
}

// Terminate forgets an id.
func (s *sessions) Terminate(id string) (isNotAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who := s.owner[id]; who != "" {
		if s.count[who]--; s.count[who] == 0 {
			delete(s.count, who)
		}
	}
	delete(s.owner, id)
	return false, nil
}

// of returns who owns id, and whether it is open.
func (s *sessions) of(id string) (who string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, known = s.owner[id]
	return who, known
}

// bind makes id who's, if it is open and nobody's.
func (s *sessions) bind(id, who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.owner[id]; ok && w == "" {
		s.owner[id] = who
		s.count[who]++
	}
}

// open returns how many who has.
func (s *sessions) open(who string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[who]
}
