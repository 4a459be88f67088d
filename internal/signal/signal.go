// Package signal wakes whoever waits for something to change.
//
// What always holds: whoever takes the channel before looking at what the
// signal is about misses no change; nobody who sends is ever held up.
package signal

import "sync"

// A Signal wakes everyone who waits for it. Its zero value is ready for use,
// by any number of goroutines.
type Signal struct {
	mu sync.Mutex
	ch chan struct{} // closed and dropped at every send
}

// Next returns a channel that is closed at the next Send.
func (s *Signal) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Send wakes all who wait.
func (s *Signal) Send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
