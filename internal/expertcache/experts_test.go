package expertcache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// naive is a policy as its definition reads, by looking at everything.
type naive struct {
	name      string
	life      float64
	perLayer  int
	layers    int
	step      int64
	layer     int
	uses      map[Expert][]use // of all time
	resident  map[Expert]bool
	order     int64
	lastOrder map[Expert]int64
}

type use struct{ step int64 }

func (p *naive) Name() string { return p.name }

func (p *naive) Reset(layers, perLayer int) {
	p.perLayer, p.layers = perLayer, layers
	p.uses, p.resident, p.lastOrder = map[Expert][]use{}, map[Expert]bool{}, map[Expert]int64{}
}

func (p *naive) Begin(step int64, layer int) { p.step, p.layer = step, layer }

func (p *naive) Add(e Expert) { p.resident[e] = true; p.Use(e) }

func (p *naive) Use(e Expert) {
	p.order++
	p.lastOrder[e] = p.order
	p.uses[e] = append(p.uses[e], use{p.step})
}

func (p *naive) Remove(e Expert) { delete(p.resident, e) }

// before says whether a is evicted before b.
func (p *naive) before(a, b Expert) bool {
	switch p.name {
	case "lru":
		return p.lastOrder[a] < p.lastOrder[b]
	case "weighted":
		if wa, wb := p.worth(a), p.worth(b); math.Abs(wa-wb) > 1e-9*wb {
			return wa < wb
		}
		return a < b
	}
	if pa, pb := p.passed(a), p.passed(b); pa != pb {
		return pa > pb
	}
	if da, db := p.distance(a), p.distance(b); da != db {
		return da > db
	}
	return p.lastOrder[a] < p.lastOrder[b]
}

func (p *naive) worth(e Expert) (sum float64) {
	for _, u := range p.uses[e] {
		sum += math.Exp2(-float64(p.step-u.step) / p.life)
	}
	return sum
}

// passed counts the runs of the expert's layer since its last use.
func (p *naive) passed(e Expert) (n int) {
	last := p.uses[e][len(p.uses[e])-1].step
	for s := last + 1; s <= p.step; s++ {
		if s < p.step || int(e)/p.perLayer <= p.layer {
			n++
		}
	}
	return n
}

// distance is how many layers run before the expert's runs again.
func (p *naive) distance(e Expert) int {
	d := int(e)/p.perLayer - p.layer
	if d <= 0 {
		d += p.layers
	}
	return d
}

func (p *naive) Victim(pinned func(Expert) bool) (best Expert, ok bool) {
	for e := range p.resident {
		if !pinned(e) && (!ok || p.before(e, best)) {
			best, ok = e, true
		}
	}
	if ok {
		delete(p.resident, best)
	}
	return best, ok
}

func traces() map[string]*Routing {
	return map[string]*Routing{
		"uniform": Synthetic{Layers: 3, Experts: 8, Used: 2, Seed: 1}.Routing(0, 120),
		"skewed":  Synthetic{Layers: 5, Experts: 16, Used: 2, Skew: 1.2, Seed: 2}.Routing(9, 150),
		"topics":  Synthetic{Layers: 4, Experts: 32, Used: 4, Skew: 1, TopicSteps: 20, TopicShare: 0.5, Seed: 3}.Routing(3, 120),
	}
}

// TestPolicies: each policy evicts what its definition says, and none does better than what knows
// the future.
func TestPolicies(t *testing.T) {
	for name, trace := range traces() {
		all := trace.Layers * trace.Experts
		for _, slots := range []int{1, trace.Used, trace.Used + 1, all / 4, all / 2, all - 1, all} {
			best, err := Optimum(trace, slots)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				name string
				life float64
			}{{"lru", 0}, {"stale", 0}, {"weighted", 3}, {"weighted", 40}} {
				arg := c.name
				if c.life > 0 {
					arg = fmt.Sprintf("%s:%g", c.name, c.life)
				}
				p, err := ByName(arg)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Replay(trace, slots, p)
				if err != nil {
					t.Fatal(err)
				}
				want, err := Replay(trace, slots, &naive{name: c.name, life: c.life})
				if err != nil {
					t.Fatal(err)
				}
				if got.Stats != want.Stats {
					t.Errorf("%s, %s, %d slots: %+v, by definition %+v", name, arg, slots, got.Stats, want.Stats)
				}
				if got.Hits > best.Hits || got.Hits+got.Misses != best.Hits+best.Misses {
					t.Errorf("%s, %s, %d slots: %+v, optimum %+v", name, arg, slots, got.Stats, best.Stats)
				}
			}
			if slots == all && (best.Evictions > 0 || best.Misses > int64(all)) {
				t.Errorf("%s: room for all, and yet %+v", name, best.Stats)
			}
		}
	}
}

// TestWeigh: where some experts cost more to bring than others, the others go first, and what is brought costs less.
func TestWeigh(t *testing.T) {
	const layers, per, slots, times = 3, 32, 40, 16
	trace := Synthetic{Layers: layers, Experts: per, Used: 4, Seed: 9}.Routing(0, 400)
	for _, name := range []string{"weighted", "adaptive"} {
		testWeigh(t, name, trace, layers, per, slots, times)
	}
}

func testWeigh(t *testing.T, name string, trace *Routing, layers, per, slots int, times int64) {
	costs := map[bool]int64{}
	for _, weighs := range []bool{false, true} {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCache(layers, per, slots, p)
		if err != nil {
			t.Fatal(err)
		}
		dear := func(e Expert) bool { return e%2 == 0 }
		for l := range layers {
			for id := range int32(per) {
				if weighs && dear(c.expert(l, id)) {
					c.Weigh(l, id, float64(times))
				}
			}
		}
		seen, ids, list := make([]bool, per), []int32{}, []Taken{}
		for i, s := range trace.Steps {
			for l := range layers {
				c.Begin(int64(i+1), l)
				ids = trace.distinct(s, l, seen, ids[:0])
				list = c.Take(l, ids, list[:0])
				for _, one := range list {
					c.Release(one)
					switch {
					case one.Hit:
					case dear(one.Expert):
						costs[weighs] += times
					default:
						costs[weighs]++
					}
				}
			}
		}
	}
	if costs[true] > costs[false]*2/3 {
		t.Errorf("%s: with weights it costs %d, without %d", name, costs[true], costs[false])
	}
}

// TestOptimum: it is as good as the best of all ways to evict, tried one by one.
func TestOptimum(t *testing.T) {
	for seed := range uint64(6) {
		trace := Synthetic{Layers: 2, Experts: 4, Used: 1, Skew: 0.5, Seed: seed}.Routing(0, 7)
		for slots := 1; slots <= 4; slots++ {
			r, err := Optimum(trace, slots)
			if err != nil {
				t.Fatal(err)
			}
			var asked []Expert
			for _, s := range trace.Steps {
				for l, id := range s.IDs {
					asked = append(asked, Expert(l*4)+Expert(id))
				}
			}
			if want := mostHits(asked, 0, slots); r.Hits != int64(want) {
				t.Errorf("seed %d, %d slots: %d hits, %d are possible", seed, slots, r.Hits, want)
			}
		}
	}
}

// mostHits tries every victim; resident is a set of bits.
func mostHits(asked []Expert, resident uint, slots int) (most int) {
	if len(asked) == 0 {
		return 0
	}
	bit := uint(1) << asked[0]
	if resident&bit != 0 {
		return 1 + mostHits(asked[1:], resident, slots)
	}
	n := 0
	for r := resident; r != 0; r &= r - 1 {
		n++
	}
	if n < slots {
		return mostHits(asked[1:], resident|bit, slots)
	}
	for r := resident; r != 0; r &= r - 1 {
		most = max(most, mostHits(asked[1:], resident&^(r&-r)|bit, slots))
	}
	return most
}

// TestAdaptive: on skewed routing it comes close to the best half-life, and after a change of topic
// it leaves an LFU behind.
func TestAdaptive(t *testing.T) {
	for name, o := range map[string]Synthetic{
		"steady": {Layers: 24, Experts: 64, Used: 4, Skew: 1, Seed: 4},
		"topics": {Layers: 24, Experts: 64, Used: 4, Skew: 1.2, TopicSteps: 60, TopicShare: 0.7, Seed: 5},
	} {
		trace := o.Routing(0, 900)
		slots := 24 * 64 / 3
		best, worst := 0.0, 1.0
		for _, life := range halfLives {
			r, err := Replay(trace, slots, &weighted{life: life})
			if err != nil {
				t.Fatal(err)
			}
			best, worst = max(best, r.Late.HitRate()), min(worst, r.Late.HitRate())
		}
		r, err := Replay(trace, slots, &adaptive{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.4f, half-lives %.4f to %.4f", name, r.Late.HitRate(), worst, best)
		if got := r.Late.HitRate(); got < best-0.35*(best-worst) {
			t.Errorf("%s: hit rate %.4f, the half-lives do %.4f to %.4f", name, got, worst, best)
		}
	}
}

// TestCache: whatever is taken, released, dropped and shrunk, slots and experts stay paired, nothing
// pinned goes, and a generation never comes again.
func TestCache(t *testing.T) {
	const layers, per = 4, 12
	for _, name := range Policies() {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCache(layers, per, 20, p)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(7, 8))
		held := map[Expert][]Taken{}
		generations := map[string]Expert{}
		for i := range 4000 {
			step, layer := int64(1+i/layers), i%layers
			c.Begin(step, layer)
			var ids []int32
			for _, id := range rng.Perm(per)[:1+rng.IntN(5)] {
				ids = append(ids, int32(id))
			}
			list := c.Take(layer, ids, nil)
			for _, one := range list {
				if int(one.Expert)/per != layer || c.slots[one.Slot].expert != one.Expert {
					t.Fatalf("%s: %+v holds expert %d", name, one, c.slots[one.Slot].expert)
				}
				key := fmt.Sprint(one.Slot, "/", one.Generation)
				if e, known := generations[key]; known && e != one.Expert {
					t.Fatalf("%s: slot/generation %s was of expert %d, is of %d", name, key, e, one.Expert)
				}
				if e, known := generations[key]; one.Hit != (known && e == one.Expert) {
					t.Fatalf("%s: %+v, known %v", name, one, known)
				}
				generations[key] = one.Expert
				held[one.Expert] = append(held[one.Expert], one)
			}
			if len(list) < len(ids) && pins(held) < c.Slots() {
				t.Fatalf("%s: took %d of %d with %d of %d slots pinned", name, len(list), len(ids), pins(held), c.Slots())
			}
			for e, ts := range held {
				for _, one := range ts {
					if c.slots[one.Slot].expert != e || c.slots[one.Slot].generation != one.Generation {
						t.Fatalf("%s: pinned expert %d is gone", name, e)
					}
				}
				if rng.IntN(3) == 0 {
					for _, one := range ts {
						c.Release(one)
						c.Release(Taken{Expert: e, Slot: one.Slot, Generation: one.Generation + 1}) // not its own
					}
					if rng.IntN(10) == 0 {
						c.Drop(ts[0])
						if c.slotOf[e] != none {
							t.Fatalf("%s: expert %d was dropped, and is there", name, e)
						}
					}
					delete(held, e)
				}
			}
			if i == 2500 {
				for e, ts := range held {
					for _, one := range ts {
						c.Release(one)
					}
					delete(held, e)
				}
				c.Shrink(9)
			}
			pairs(t, c)
		}
	}
}

func pins(held map[Expert][]Taken) int { return len(held) }

// pairs checks both directions, and that what is in no slot is free.
func pairs(t *testing.T, c *Cache) {
	t.Helper()
	n := 0
	for e, at := range c.slotOf {
		if at != none {
			n++
			if c.slots[at].expert != Expert(e) {
				t.Fatalf("expert %d in slot %d, which holds %d", e, at, c.slots[at].expert)
			}
		}
	}
	if n+len(c.free) != len(c.slots) {
		t.Fatalf("%d experts and %d free slots of %d", n, len(c.free), len(c.slots))
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	for _, name := range Policies() {
		p, _ := ByName(name)
		c, err := NewCache(8, 64, 100, p)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 1))
		list, ids, step := make([]Taken, 0, 8), make([]int32, 8), int64(0)
		do := func() {
			step++
			for layer := range 8 {
				c.Begin(step, layer)
				from := rng.Int32N(57)
				for i := range ids {
					ids[i] = from + int32(i)
				}
				list = c.Take(layer, ids, list[:0])
				for _, one := range list {
					c.Release(one)
				}
			}
		}
		for range 50 {
			do()
		}
		if n := testing.AllocsPerRun(100, do); n > 0 {
			t.Errorf("%s: %v allocations a step", name, n)
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range []string{"", "fifo", "lru:3", "weighted:0", "weighted:x", "weighted:-1", "weighted:nan"} {
		if p, err := ByName(name); err == nil {
			t.Errorf("%q is %s", name, p.Name())
		}
	}
	if p, err := ByName("weighted"); err != nil || p.Name() != fmt.Sprintf("weighted:%d", DefaultHalfLife) {
		t.Errorf("%v, %v", p, err)
	}
}

// BenchmarkTake is a token of a model with 48 layers of 128 experts, 8 of them used.
func BenchmarkTake(b *testing.B) {
	trace := Synthetic{Layers: 48, Experts: 128, Used: 8, Skew: 0.8, Seed: 1}.Routing(0, 200)
	for _, name := range Policies() {
		b.Run(name, func(b *testing.B) {
			p, _ := ByName(name)
			c, err := NewCache(48, 128, 48*128/3, p)
			if err != nil {
				b.Fatal(err)
			}
			seen, ids, list := make([]bool, 128), []int32{}, []Taken{}
			for n := 0; b.Loop(); n++ {
				for layer := range 48 {
					c.Begin(int64(n+1), layer)
					ids = trace.distinct(trace.Steps[n%200], layer, seen, ids[:0])
					list = c.Take(layer, ids, list[:0])
					for _, one := range list {
						c.Release(one)
					}
				}
			}
		})
	}
}
