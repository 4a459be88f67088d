package sqlitelog

import "roundtable/events"

// cacheSize bounds the streams remembered, in each of two generations. An
// entry is about 150 bytes.
const cacheSize = 32768

// A cache remembers places. When the newer generation is full it becomes the
// older one, which is forgotten: what is in use moves to the newer one.
type cache struct{ newer, older map[events.Stream]place }

func newCache() cache { return cache{newer: map[events.Stream]place{}} }

func (c *cache) get(s events.Stream) (place, bool) {
	p, ok := c.newer[s]
	if !ok {
		p, ok = c.older[s]
	}
	return p, ok
}

func (c *cache) put(s events.Stream, p place) {
	if len(c.newer) >= cacheSize {
		c.newer, c.older = make(map[events.Stream]place, cacheSize), c.newer
	}
	c.newer[s] = p
}
