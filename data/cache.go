package data

import (
	"container/list"
	"sync"
)

// cache keeps the most recently used verified chunks. It is safe for concurrent use.
type cache struct {
	max int // chunks kept

	mu      sync.Mutex // guards what follows; not held while a chunk is read
	order   *list.List // of cached, the last used first
	at      map[chunk]*list.Element
	flights map[chunk]*flight
}

// cached is what the cache's list holds.
type cached struct {
	key   chunk
	bytes []byte
}

// flight is a chunk that is being read.
type flight struct {
	done  chan struct{} // closed when what follows is set
	bytes []byte
	err   error
}

func newCache(max int) *cache {
	return &cache{max: max, order: list.New(), at: make(map[chunk]*list.Element), flights: make(map[chunk]*flight)}
}

// load returns a chunk, from memory or from its source. A caller that requests a chunk already
// being read waits for it. The bytes must not be changed.
func (c *cache) load(key chunk) ([]byte, error) {
	c.mu.Lock()
	if e, ok := c.at[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(cached).bytes, nil
	}
	f, reading := c.flights[key]
	if !reading {
		f = &flight{done: make(chan struct{})}
		c.flights[key] = f
	}
	c.mu.Unlock()
	if reading {
		<-f.done
		return f.bytes, f.err
	}
	f.bytes, f.err = key.shard.load(key.i)
	c.mu.Lock()
	delete(c.flights, key)
	if f.err == nil {
		c.keep(key, f.bytes)
	}
	c.mu.Unlock()
	close(f.done)
	return f.bytes, f.err
}

// has reports whether a chunk is in memory or being read.
func (c *cache) has(key chunk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, kept := c.at[key]
	_, reading := c.flights[key]
	return kept || reading
}

// keep adds a chunk and evicts the least recently used ones. mu is held.
func (c *cache) keep(key chunk, b []byte) {
	c.at[key] = c.order.PushFront(cached{key, b})
	for len(c.at) > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.at, last.Value.(cached).key)
	}
}
