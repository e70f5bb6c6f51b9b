package kv

import (
	"fmt"
	"sync"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/mem"
)

// Cache is the pool of pages. Its methods may be called by several goroutines.
type Cache struct {
	heap   *mem.Heap
	blocks []*vk.Buffer

	mu   sync.Mutex
	free []uint64 // device addresses of unused pages, last out first

	states []uint64 // device addresses of unused states
	stated bool     // sequences have states
	paged  bool     // sequences have pages
}

// New allocates the pool that p planned.
func New(heap *mem.Heap, p plan.KV) (*Cache, error) {
	c := &Cache{heap: heap, paged: p.PageBytes > 0}
	for i, n := range p.Blocks {
		b, err := heap.Alloc(fmt.Sprintf("KV cache block %d", i), p.BlockBytes(n), vk.DeviceLocal)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.blocks = append(c.blocks, b)
	}
	for i := range p.States {
		b, err := heap.Alloc(fmt.Sprintf("state %d", i), p.StateBytes, vk.DeviceLocal)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.blocks, c.states, c.stated = append(c.blocks, b), append(c.states, b.Address), true
	}
	for i := len(p.Blocks) - 1; i >= 0; i-- {
		for n := p.Blocks[i] - 1; n >= 0; n-- {
			c.free = append(c.free, c.blocks[i].Address+uint64(int64(n)*p.PageBytes))
		}
	}
	return c, nil
}

// Close frees the pool; no sequence may be used afterwards.
func (c *Cache) Close() {
	for _, b := range c.blocks {
		c.heap.Free(b)
	}
	c.blocks, c.free, c.states = nil, nil, nil
}

// Free returns the number of unused pages.
func (c *Cache) Free() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.free)
}

// Sequence is one session's pages, in order of position. It is owned by one
// goroutine at a time.
type Sequence struct {
	cache *Cache
	pages []uint64
	n     int
	most  int // positions reserved

	states [2]uint64 // the state after n positions, and the other; 0: there are none
	before int       // after how many positions the other is the state; -1: it is nothing
}

// NewSequence reserves pages for capacity positions, or fails without taking any.
func (c *Cache) NewSequence(capacity int) (*Sequence, error) {
	need := (capacity + plan.PagePositions - 1) / plan.PagePositions
	s := &Sequence{cache: c, before: -1, most: need * plan.PagePositions}
	if !c.paged {
		need = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if need > len(c.free) {
		return nil, fmt.Errorf("reserve KV cache for %d positions: %d pages are free, %d wanted", capacity, len(c.free), need)
	}
	if c.stated && len(c.states) < 2 {
		return nil, fmt.Errorf("reserve a state: %d are free, 2 wanted", len(c.states))
	}
	cut := len(c.free) - need
	if c.stated {
		left := len(c.states) - 2
		s.states = [2]uint64(c.states[left:])
		c.states = c.states[:left]
	}
	for i := len(c.free) - 1; i >= cut; i-- {
		s.pages = append(s.pages, c.free[i])
	}
	c.free = c.free[:cut]
	return s, nil
}

// Pages returns the device addresses of the sequence's pages.
func (s *Sequence) Pages() []uint64 { return s.pages }

// Len is the number of positions filled.
func (s *Sequence) Len() int { return s.n }

// Cap is the number of positions reserved.
func (s *Sequence) Cap() int { return s.most }

// States returns the device addresses of the state after the positions filled, and of where a step puts the one after
// its own; 0 where layers have no states.
func (s *Sequence) States() (from, to uint64) { return s.states[0], s.states[1] }

// Append counts n more positions as filled: a step has written them, and the state after them.
func (s *Sequence) Append(n int) error {
	if s.n+n > s.Cap() {
		return fmt.Errorf("append %d positions to a sequence of %d: only %d are reserved", n, s.n, s.Cap())
	}
	if n > 0 {
		s.before = s.n
		s.states[0], s.states[1] = s.states[1], s.states[0]
	}
	s.n += n
	return nil
}

// Truncate forgets positions n and later. A state goes back no further than the last step's beginning; where that is not n, all
// positions are forgotten and have to be run again.
func (s *Sequence) Truncate(n int) error {
	if n < 0 || n > s.n {
		return fmt.Errorf("truncate a sequence of %d positions to %d", s.n, n)
	}
	if s.states[0] != 0 && n < s.n {
		if n == s.before {
			s.states[0], s.states[1] = s.states[1], s.states[0]
		} else {
			n = 0
		}
		s.before = -1
	}
	s.n = n
	return nil
}

// Release gives pages and states back; safe to call twice.
func (s *Sequence) Release() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.free = append(s.cache.free, s.pages...)
	if s.states[0] != 0 {
		s.cache.states = append(s.cache.states, s.states[:]...)
	}
	s.pages, s.n, s.most, s.states = nil, 0, 0, [2]uint64{}
}
