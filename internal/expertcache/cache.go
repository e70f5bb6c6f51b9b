package expertcache

import "fmt"

// Expert numbers the experts of all layers: layer * experts of a layer + id.
type Expert int32

const none = -1

// Cache keeps track of experts in a fixed number of slots. One goroutine uses it. It moves no
// bytes: who takes a slot that was no hit has to fill it.
type Cache struct {
	perLayer int
	policy   Policy
	pinned   func(Expert) bool // made once: a method's value allocates
	slotOf   []int32           // by expert; none: in no slot
	slots    []slot
	free     []int32
	left     []Expert // whose slots went to others since Left
	listed   []bool   // by expert: it is in left
	stats    Stats
}

type slot struct {
	expert     Expert // none: empty
	generation uint32 // counts the experts that have been here
	pins       int32
}

// Stats counts what a cache was asked for.
type Stats struct{ Hits, Misses, Evictions int64 }

// HitRate is the part of what was asked for that was there.
func (s Stats) HitRate() float64 {
	if s.Hits+s.Misses == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Hits+s.Misses)
}

// Taken is an expert that [Cache.Take] has pinned in a slot: it stays there until [Cache.Release].
type Taken struct {
	Expert     Expert
	Slot       int
	Generation uint32 // of the slot; another one means that another expert is there
	Hit        bool   // its bytes are there, or on their way, since it was taken before
}

// NewCache makes an empty cache for layers of perLayer experts each.
func NewCache(layers, perLayer, slots int, p Policy) (*Cache, error) {
	if layers < 1 || perLayer < 1 || slots < 1 || layers > 1<<15 || perLayer > 1<<15 {
		return nil, fmt.Errorf("cache experts: found %d layers of %d experts and %d slots, wanted at least one of each and at most %d", layers, perLayer, slots, 1<<15)
	}
	c := &Cache{perLayer: perLayer, policy: p, slotOf: make([]int32, layers*perLayer), listed: make([]bool, layers*perLayer)}
	c.left = make([]Expert, 0, layers*perLayer)
	for i := range c.slotOf {
		c.slotOf[i] = none
	}
	for i := range slots {
		c.slots = append(c.slots, slot{expert: none})
		c.free = append(c.free, int32(slots-1-i))
	}
	c.pinned = func(e Expert) bool { return c.slots[c.slotOf[e]].pins > 0 }
	p.Reset(layers, perLayer)
	return c, nil
}

// Begin says that a layer runs, as part of a step; steps are counted from 1, and only ascend.
func (c *Cache) Begin(step int64, layer int) { c.policy.Begin(step, layer) }

// Has reports whether an expert of a layer is in a slot.
func (c *Cache) Has(layer int, id int32) bool { return c.slotOf[c.expert(layer, id)] != none }

// Weigh says that an expert of a layer, which is in no slot, costs so many times as much as others to bring; policies that are
// no [Weigher] do not care.
func (c *Cache) Weigh(layer int, id int32, times float64) {
	if w, ok := c.policy.(Weigher); ok {
		w.Weigh(c.expert(layer, id), times)
	}
}

// Take pins experts of a layer, given by ids that are all different, and appends them to list. An expert without a slot
// gets one, an empty one or a victim's. Where all slots are pinned Take ends early:
// the remaining experts can be taken after a [Cache.Release].
func (c *Cache) Take(layer int, ids []int32, list []Taken) []Taken {
	first := len(list)
	for _, id := range ids { // pinned before any victim is chosen
		e := c.expert(layer, id)
		if at := c.slotOf[e]; at != none {
			c.slots[at].pins++
			c.policy.Use(e)
			c.stats.Hits++
			list = append(list, Taken{e, int(at), c.slots[at].generation, true})
		}
	}
	hits := len(list)
	for _, id := range ids {
		e := c.expert(layer, id)
		if among(list[first:hits], e) {
			continue
		}
		at, ok := c.room()
		if !ok {
			break
		}
		s := &c.slots[at]
		s.expert, s.pins = e, 1
		s.generation++
		c.slotOf[e] = at
		c.policy.Add(e)
		c.stats.Misses++
		list = append(list, Taken{e, int(at), s.generation, false})
	}
	return list
}

func (c *Cache) expert(layer int, id int32) Expert { return Expert(layer*c.perLayer) + Expert(id) }

func among(list []Taken, e Expert) bool {
	for i := range list {
		if list[i].Expert == e {
			return true
		}
	}
	return false
}

// room is an empty slot, if need be after an eviction.
func (c *Cache) room() (int32, bool) {
	if n := len(c.free); n > 0 {
		at := c.free[n-1]
		c.free = c.free[:n-1]
		return at, true
	}
	e, ok := c.policy.Victim(c.pinned)
	if !ok {
		return 0, false
	}
	at := c.slotOf[e]
	c.drop(at)
	c.stats.Evictions++
	return at, true
}

func (c *Cache) drop(at int32) {
	e := c.slots[at].expert
	if !c.listed[e] {
		c.listed[e], c.left = true, append(c.left, e)
	}
	c.slotOf[e] = none
	c.slots[at].expert = none
}

// Release unpins an expert. The caller must also [Cache.Drop] an expert whose bytes never arrived.
func (c *Cache) Release(t Taken) {
	if s := &c.slots[t.Slot]; s.generation == t.Generation && s.pins > 0 {
		s.pins--
	}
}

// Drop forgets an expert, because its bytes could not be read, or are not valid any more. An expert that others
// have pinned stays.
func (c *Cache) Drop(t Taken) {
	s := &c.slots[t.Slot]
	if s.generation != t.Generation || s.expert != t.Expert || s.pins > 0 {
		return
	}
	c.policy.Remove(s.expert)
	c.drop(int32(t.Slot))
	c.free = append(c.free, int32(t.Slot))
}

// Left lists whom a slot was taken away from since it was asked last, each once; who has come back is listed, too. The list is good
// until the next change.
func (c *Cache) Left() []Expert {
	for _, e := range c.left {
		c.listed[e] = false
	}
	left := c.left
	c.left = c.left[:0]
	return left
}

// Shrink gives up the slots from n on, with what is in them; nothing may be pinned. It
// returns how many experts were lost.
func (c *Cache) Shrink(n int) (lost int) {
	if n = max(1, n); n >= len(c.slots) {
		return 0
	}
	for at := n; at < len(c.slots); at++ {
		if e := c.slots[at].expert; e != none {
			c.policy.Remove(e)
			c.drop(int32(at))
			lost++
		}
	}
	c.slots = c.slots[:n]
	kept := c.free[:0]
	for _, at := range c.free {
		if int(at) < n {
			kept = append(kept, at)
		}
	}
	c.free = kept
	return lost
}

// Slots is how many there are, and Stats what was asked of them.
func (c *Cache) Slots() int { return len(c.slots) }

// Stats may be called between two calls of Take.
func (c *Cache) Stats() Stats { return c.stats }
