package auth

import (
	"sync"
	"time"
)

// A Limiter bounds how often each principal may ask: rate calls a second, and
// bursts of burst. It may be used by many goroutines at once.
type Limiter struct {
	rate  float64
	burst float64
	now   func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket // full ones are dropped
}

type bucket struct {
	left float64
	at   time.Time
}

// NewLimiter returns a limiter of rate calls a second and principal; a rate
// of 0 or less never limits.
func NewLimiter(rate, burst int, now func() time.Time) *Limiter {
	return &Limiter{rate: float64(rate), burst: float64(max(burst, 1)), now: now, buckets: map[string]bucket{}}
}

// Take takes one call of principal, or says how long to wait for one.
func (l *Limiter) Take(principal string) (wait time.Duration, ok bool) {
	if l.rate <= 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b, known := l.buckets[principal]
	if !known {
		l.sweep(now)
		b = bucket{left: l.burst, at: now}
	}
	b.left = min(l.burst, b.left+max(0, now.Sub(b.at).Seconds())*l.rate)
	b.at = now
	if b.left < 1 {
		l.buckets[principal] = b
		return time.Duration((1 - b.left) / l.rate * float64(time.Second)), false
	}
	b.left--
	l.buckets[principal] = b
	return 0, true
}

// sweep forgets principals whose bucket has filled up again.
func (l *Limiter) sweep(now time.Time) {
	if len(l.buckets) < 1024 {
		return
	}
	for k, b := range l.buckets {
		if b.left+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, k)
		}
	}
}
