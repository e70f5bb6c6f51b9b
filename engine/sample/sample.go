package sample

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

var (
	// ErrNotFinite: the logits have no largest finite number, so the model or its weights are broken.
	ErrNotFinite = errors.New("the largest logit is not a finite number")
	// ErrNothingLeft: mask and logit bias ban every token.
	ErrNothingLeft = errors.New("the mask and the logit bias leave no token")
)

// Mask restricts the choice; a grammar is one.
type Mask interface {
	// Mask sets the logits, shape (V), of forbidden tokens to −Inf.
	Mask(logits []float32)
	// Accept tells it of the next token, which need not be one that it allowed.
	Accept(id int32)
}

// Sampler makes a sequence of choices. One goroutine owns it.
type Sampler struct {
	p        Params // defaults filled in
	rng      *rand.Rand
	mask     Mask
	bias     []bias
	breakers map[int32]bool
	history  []int32 // the last tokens, oldest first; at least lookBack of them
	lookBack int

	// Scratch, kept so that a choice allocates nothing.
	logits []float32   // (V) after the stages that change them
	counts []int32     // (V) zeros between stages
	z      []int32     // (history)
	kept   []candidate // in order of id
	ranks  []rank
	sums   []float64 // (V / blockLen)
	shape  profile
}

type bias struct {
	id  int32
	add float32
}

// New returns a sampler for valid parameters, which it copies.
func New(p Params) *Sampler {
	if p.Seed == 0 {
		p.Seed = NewSeed()
	}
	s := &Sampler{p: p.filled(), rng: rand.New(rand.NewPCG(p.Seed, p.Seed^0x9e3779b97f4a7c15))}
	s.lookBack = s.p.lookBack()
	for _, id := range slices.Sorted(maps.Keys(p.LogitBias)) {
		s.bias = append(s.bias, bias{id, p.LogitBias[id]})
	}
	s.breakers = make(map[int32]bool, len(p.DRYBreakers))
	for _, id := range p.DRYBreakers {
		s.breakers[id] = true
	}
	return s
}

// NewSeed draws a seed, which is never 0, and short enough for a person to type again.
func NewSeed() uint64 { return uint64(rand.Uint32N(math.MaxUint32)) + 1 }

// Seed is the seed that the sampler's choices follow from.
func (s *Sampler) Seed() uint64 { return s.p.Seed }

// SetMask makes m restrict all choices from now on; nil removes it.
func (s *Sampler) SetMask(m Mask) { s.mask = m }

// Prime adds tokens that weren't chosen, a prompt, to what the penalties look back on.
func (s *Sampler) Prime(ids ...int32) {
	if s.lookBack == 0 {
		return
	}
	s.history = append(s.history, ids...)
	if n := len(s.history); n/2 >= s.lookBack { // seldom, so that it costs nothing
		s.history = s.history[:copy(s.history, s.history[n-s.lookBack:])]
	}
}

// Accept adds a chosen token to what the penalties look back on, and tells the mask.
func (s *Sampler) Accept(id int32) {
	s.Prime(id)
	if s.mask != nil {
		s.mask.Accept(id)
	}
}

// Next chooses an id for logits, shape (V), which it leaves as they are. It remembers
// nothing of its choice: the caller says with [Sampler.Accept] which it took. The error
// wraps [ErrNotFinite] or [ErrNothingLeft].
func (s *Sampler) Next(logits []float32) (int32, error) {
	changed := s.change(logits)
	best := Argmax(changed)
	if !isFinite(changed, best) {
		err := ErrNotFinite
		if isFinite(logits, Argmax(logits)) {
			err = ErrNothingLeft
		}
		return 0, fmt.Errorf("sample from %d logits: %w", len(logits), err)
	}
	if s.p.Temperature == 0 {
		return int32(best), nil
	}
	if s.p.TopK == 0 && !within01(s.p.TypicalP) && !within01(s.p.TopP) && s.p.MinP == 0 && s.p.XTCProbability == 0 {
		return s.drawAll(changed, best), nil
	}
	return s.draw(s.filter(changed, best)), nil
}

// change applies the stages that work on logits. It returns logits itself when none is on.
func (s *Sampler) change(logits []float32) []float32 {
	penalizes := s.p.penalizes() && len(s.history) > 0
	dry := s.p.DRYMultiplier > 0 && len(s.history) > 0
	if s.mask == nil && len(s.bias) == 0 && !penalizes && !dry {
		return logits
	}
	s.logits = append(s.logits[:0], logits...)
	if s.mask != nil {
		s.mask.Mask(s.logits)
	}
	for _, b := range s.bias {
		if within(b.id, s.logits) {
			s.logits[b.id] = moved(s.logits[b.id], float64(s.logits[b.id])+float64(b.add))
		}
	}
	if n := len(s.logits); len(s.counts) < n {
		s.counts = make([]int32, n)
	}
	if penalizes {
		s.penalize(s.logits)
	}
	if dry {
		s.dry(s.logits)
	}
	return s.logits
}

// filter fills s.kept with the tokens that may be drawn, their final weights, and returns
// the weights' sum. best is the largest logit's index.
func (s *Sampler) filter(logits []float32, best int) (sum float64) {
	typical, topP := within01(s.p.TypicalP), within01(s.p.TopP)
	least := float32(math.Inf(-1)) // what a filter would remove in any case need not be gathered
	shape := &s.shape
	switch all := s.p.TopK == 0 || s.p.TopK >= len(logits); {
	case typical && all:
		shape.measure(logits, logits[best])
		least = shape.typical(s.p.TypicalP)
	case topP && all:
		shape.measure(logits, logits[best])
		least = shape.reaching(s.p.TopP)
	case s.p.MinP > 0 && !typical && !topP:
		least = s.minLogit(logits[best]) // it commutes with top-k
		shape = nil
	default:
		shape = nil
	}
	s.keepTopK(logits, least)
	if typical {
		s.keepTypical(shape)
		shape = nil
	}
	if topP {
		s.keepTopP(shape)
	}
	if s.p.MinP > 0 {
		s.keepMinP()
	}
	if s.p.XTCProbability > 0 {
		s.excludeTopChoices()
	}
	return weigh(s.kept, s.p.Temperature)
}

// draw chooses among s.kept, whose weights have this sum.
func (s *Sampler) draw(sum float64) int32 {
	at := s.rng.Float64() * sum
	var reached float64
	last := s.kept[0].id
	for i := range s.kept {
		c := &s.kept[i]
		if c.weight == 0 {
			continue
		}
		last = c.id
		if reached += c.weight; at < reached {
			break
		}
	}
	return last
}

// Argmax returns the index of the largest logit: the lowest among equals, NaN last.
func Argmax(logits []float32) int {
	least := float32(math.Inf(-1))
	a, b, c, d := least, least, least, least
	i := 0
	for ; i+4 <= len(logits); i += 4 { // four chains, none of which waits for another
		four := logits[i : i+4 : i+4]
		if four[0] > a {
			a = four[0]
		}
		if four[1] > b {
			b = four[1]
		}
		if four[2] > c {
			c = four[2]
		}
		if four[3] > d {
			d = four[3]
		}
	}
	for _, l := range logits[i:] {
		if l > a {
			a = l
		}
	}
	top := max(a, b, c, d)
	for i, l := range logits {
		if l == top {
			return i
		}
	}
	return 0 // all are NaN
}

func isFinite(logits []float32, i int) bool {
	return i < len(logits) && !math.IsNaN(float64(logits[i])) && !math.IsInf(float64(logits[i]), 0)
}

// within01 reports whether a filter that keeps a share p of all is on.
func within01(p float64) bool { return p > 0 && p < 1 }

func within(id int32, logits []float32) bool { return id >= 0 && int(id) < len(logits) }

// moved is x as a logit that was finite and must stay so: only a ban makes −Inf. A
// logit that wasn't finite stays what it was.
func moved(was float32, x float64) float32 {
	switch {
	case math.IsNaN(float64(was)) || math.IsInf(float64(was), 0):
		return was
	case math.IsInf(x, -1):
		return float32(x)
	}
	return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32)))
}
