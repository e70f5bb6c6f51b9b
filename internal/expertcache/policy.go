package expertcache

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Policy orders resident experts by when to evict them. A cache calls it; one goroutine uses it.
type Policy interface {
	Name() string
	Reset(layers, perLayer int)                          // before anything else: nothing is resident
	Begin(step int64, layer int)                         // what follows is for that layer in that step
	Add(e Expert)                                        // becomes resident, as it is used
	Use(e Expert)                                        // a resident one is used
	Remove(e Expert)                                     // is not resident any more, though it was no victim
	Victim(pinned func(Expert) bool) (e Expert, ok bool) // evicts one that is not pinned; false: all are
}

// Weigher is a policy that can hold some experts dearer than others: as much as so many of the others' uses each of theirs.
type Weigher interface {
	Weigh(e Expert, times float64) // while e is not resident
}

// Policies lists the names that [ByName] knows.
func Policies() []string { return []string{"lru", "weighted", "stale", "adaptive"} }

// DefaultHalfLife is the weighted policy's, in steps: on synthetic routing it is near the best of all, with and without changes of topic.
const DefaultHalfLife = 128

// ByName makes a policy. "weighted:64" sets the half-life of a use, in steps.
func ByName(name string) (Policy, error) {
	name, param, has := strings.Cut(name, ":")
	life := float64(DefaultHalfLife)
	if has {
		var err error
		if life, err = strconv.ParseFloat(param, 64); err != nil || !(life > 0) || name != "weighted" {
			return nil, fmt.Errorf("policy %q: found parameter %q, wanted a half-life above 0, of weighted", name, param)
		}
	}
	switch name {
	case "lru":
		return &lru{}, nil
	case "weighted":
		return &weighted{life: life}, nil
	case "stale":
		return &stale{}, nil
	case "adaptive":
		return &adaptive{}, nil
	}
	return nil, fmt.Errorf("policy: found %q, wanted one of %s", name, strings.Join(Policies(), ", "))
}

// chain is a list of experts, linked through arrays that several chains share.
type chain struct{ oldest, newest Expert }

type links struct{ older, newer []Expert }

func newLinks(n int) links {
	l := links{make([]Expert, n), make([]Expert, n)}
	return l
}

var emptyChain = chain{none, none}

func (l *links) push(c *chain, e Expert) {
	l.older[e], l.newer[e] = c.newest, none
	if c.newest != none {
		l.newer[c.newest] = e
	} else {
		c.oldest = e
	}
	c.newest = e
}

func (l *links) remove(c *chain, e Expert) {
	if o := l.older[e]; o != none {
		l.newer[o] = l.newer[e]
	} else {
		c.oldest = l.newer[e]
	}
	if n := l.newer[e]; n != none {
		l.older[n] = l.older[e]
	} else {
		c.newest = l.older[e]
	}
}

// lru evicts what was not used for the longest time.
type lru struct {
	links
	all chain
}

func (p *lru) Name() string { return "lru" }

func (p *lru) Reset(layers, perLayer int) { p.links, p.all = newLinks(layers*perLayer), emptyChain }

func (p *lru) Begin(int64, int) {}

func (p *lru) Add(e Expert) { p.push(&p.all, e) }

func (p *lru) Use(e Expert) { p.remove(&p.all, e); p.push(&p.all, e) }

func (p *lru) Remove(e Expert) { p.remove(&p.all, e) }

func (p *lru) Victim(pinned func(Expert) bool) (Expert, bool) {
	for e := p.all.oldest; e != none; e = p.newer[e] {
		if !pinned(e) {
			p.remove(&p.all, e)
			return e, true
		}
	}
	return none, false
}

// stale evicts what was passed by most often: of a layer that ran, how many times it was not
// used. Where several were as often, the one whose layer runs again last. A plain LRU has it
// the wrong way round: the oldest are those of the layers that come next.
type stale struct {
	links
	layers   []chain
	perLayer int
	used     []int64 // by expert: the step
	step     int64
	layer    int
}

func (p *stale) Name() string { return "stale" }

func (p *stale) Reset(layers, perLayer int) {
	*p = stale{links: newLinks(layers * perLayer), layers: slices.Repeat([]chain{emptyChain}, layers), perLayer: perLayer, used: make([]int64, layers*perLayer)}
}

func (p *stale) Begin(step int64, layer int) { p.step, p.layer = step, layer }

func (p *stale) of(e Expert) *chain { return &p.layers[int(e)/p.perLayer] }

func (p *stale) Add(e Expert) { p.used[e] = p.step; p.push(p.of(e), e) }

func (p *stale) Use(e Expert) { p.remove(p.of(e), e); p.Add(e) }

func (p *stale) Remove(e Expert) { p.remove(p.of(e), e) }

// passed is how often the expert's layer ran without using it since its last use.
func (p *stale) passed(e Expert) int64 {
	n := p.step - p.used[e]
	if int(e)/p.perLayer > p.layer { // it has yet to run in this step
		n--
	}
	return n
}

func (p *stale) Victim(pinned func(Expert) bool) (Expert, bool) {
	best, most, n := Expert(none), int64(0), len(p.layers)
	for i := range n { // from the layer that ran last, which runs again last, backwards
		for e := p.layers[(p.layer-i+n)%n].oldest; e != none; e = p.newer[e] {
			if pinned(e) {
				continue
			}
			if passed := p.passed(e); best == none || passed > most {
				best, most = e, passed
			}
			break
		}
	}
	if best == none {
		return none, false
	}
	p.Remove(best)
	return best, true
}
