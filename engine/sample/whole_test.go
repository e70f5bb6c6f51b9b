package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExp: 13 digits, 12 at the end.
func TestExp(t *testing.T) {
	for x := 0.0; x > -720; x -= 0.00390137 {
		want := math.Exp(x)
		if x < expLeast {
			want = 0
		}
		if got := exp(x); math.Abs(got-want) > (5e-14-1e-15*x)*want {
			t.Fatalf("exp(%g) is %g, want %g", x, got, want)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(-1), -math.MaxFloat64} {
		if got := exp(x); got != 0 {
			t.Errorf("exp(%g) is %g, want 0", x, got)
		}
	}
	if exp(0) != 1 || exp(math.Copysign(0, -1)) != 1 {
		t.Errorf("exp(0) is %g and %g, want 1", exp(0), exp(math.Copysign(0, -1)))
	}
}

// TestDrawAll: drawing from blocks takes the token that drawing from a list of all takes.
func TestDrawAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, n := range []int{1, 2, blockLen - 1, blockLen, blockLen + 1, 3000} {
		for range 300 {
			logits := randomLogits(rng, n)
			p := Params{Temperature: []float64{1e-3, 0.3, 0.8, 1, 5, 1e6}[rng.IntN(6)], Seed: rng.Uint64()}
			s, list := New(p), New(p)
			best := Argmax(logits)
			for range 5 {
				got, want := s.drawAll(logits, best), list.draw(list.filter(logits, best))
				if got != want {
					t.Fatalf("%d logits at temperature %g: token %d (%g), want %d (%g)", n, p.Temperature, got, logits[got], want, logits[want])
				}
			}
		}
	}
}

// TestProfile: its bounds leave out nothing that the filters keep, and of a large vocabulary almost all else.
func TestProfile(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	var p profile
	for range 2000 {
		logits := randomLogits(rng, 1+rng.IntN(400))
		top := logits[Argmax(logits)]
		p.measure(logits, top)
		var sum float64
		for _, l := range logits {
			if l >= -math.MaxFloat32 {
				sum += math.Exp(float64(l) - float64(top))
			}
		}
		if math.Abs(p.sum-sum) > 1e-12*sum {
			t.Fatalf("sum %g, want %g", p.sum, sum)
		}
		share := rng.Float64()
		var above float64
		least := p.reaching(share)
		for _, l := range logits {
			if l >= least && l >= -math.MaxFloat32 {
				above += math.Exp(float64(l) - float64(top))
			}
		}
		if above < share*sum {
			t.Fatalf("those that reach %g have %g of all, want %g", least, above/sum, share)
		}
		entropy, logSum := p.entropy()
		least = p.typical(share)
		for _, l := range logits { // those nearer to the entropy than the bound have less than the share
			if l < least && l >= -math.MaxFloat32 {
				far, nearer := math.Abs(logSum-float64(l-top)-entropy), 0.0
				for _, m := range logits {
					if m >= -math.MaxFloat32 && math.Abs(logSum-float64(m-top)-entropy) < far {
						nearer += math.Exp(float64(m) - float64(top))
					}
				}
				if nearer < share*sum*(1-1e-9) {
					t.Fatalf("%g is below the bound %g, but all that is nearer to the entropy has %g, less than %g", l, least, nearer/sum, share)
				}
			}
		}
	}
	logits := language()
	for _, q := range []Params{{Temperature: 1, TopP: 0.95}, {Temperature: 1, TypicalP: 0.95}} {
		s := New(q)
		s.shape.measure(logits, logits[Argmax(logits)])
		least := s.shape.reaching(0.95)
		if q.TypicalP > 0 {
			least = s.shape.typical(0.95)
		}
		n := 0
		for _, l := range logits {
			if l >= least {
				n++
			}
		}
		if n > 5000 {
			t.Errorf("%+v: %d of %d tokens are gathered", q, n, len(logits))
		}
	}
}
