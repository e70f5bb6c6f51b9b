package sample

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestGreedyTakesTheLargest(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      Params
		logits []float32
		want   int32
	}{
		{"plain", Params{}, []float32{1, 3, 2}, 1},
		{"lowest among equals", Params{}, []float32{0, 5, 5}, 1},
		{"not a number first", Params{}, []float32{nan, -2, -1}, 2},
		{"not a number last", Params{}, []float32{-2, -1, nan}, 1},
		{"bias", Params{LogitBias: map[int32]float32{2: 1.5}}, []float32{1, 3, 2}, 2},
		{"ban", Params{LogitBias: map[int32]float32{1: negInf}}, []float32{1, 3, 2}, 2},
		{"filters don't matter", Params{TypicalP: 0.1, XTCProbability: 1, XTCThreshold: 0.01}, []float32{1, 3, 2}, 1},
	} {
		if got, err := New(c.p).Next(c.logits); err != nil || got != c.want {
			t.Errorf("%s: got %d, error %v; wanted %d", c.name, got, err, c.want)
		}
	}
}

func TestNextRefuses(t *testing.T) {
	ban := map[int32]float32{0: negInf, 1: negInf}
	for _, c := range []struct {
		name   string
		logits []float32
		bias   map[int32]float32
		want   error
	}{
		{"no logits", nil, nil, ErrNotFinite},
		{"all NaN", []float32{nan, nan}, nil, ErrNotFinite},
		{"infinite", []float32{1, posInf}, nil, ErrNotFinite},
		{"infinite, with a bias", []float32{1, posInf}, map[int32]float32{0: 1}, ErrNotFinite},
		{"all impossible", []float32{negInf, negInf}, nil, ErrNotFinite},
		{"all banned", []float32{1, 2}, ban, ErrNothingLeft},
		{"the finite ones banned", []float32{1, 2, nan, negInf}, ban, ErrNothingLeft},
	} {
		for _, temperature := range []float64{0, 1} {
			if id, err := New(Params{Temperature: temperature, LogitBias: c.bias}).Next(c.logits); !errors.Is(err, c.want) {
				t.Errorf("%s at temperature %g: got id %d, error %v; wanted %v", c.name, temperature, id, err, c.want)
			}
		}
	}
}

// TestFrequencies: tokens come as often as the distribution says, by Pearson's test.
func TestFrequencies(t *testing.T) {
	logits := []float32{1, 0, negInf, 2, -1, 1.5, nan, 0.5}
	for _, c := range []struct {
		name string
		p    Params
		xtc  bool
	}{
		{"cool", Params{Temperature: 0.5}, false},
		{"plain", Params{Temperature: 1}, false},
		{"hot", Params{Temperature: 2}, false},
		{"filtered", Params{Temperature: 1.3, TopK: 5, TopP: 0.93, MinP: 0.1}, false},
		{"typical", Params{Temperature: 1, TypicalP: 0.6}, false},
		{"XTC", Params{Temperature: 1, XTCProbability: 1, XTCThreshold: 0.15}, true},
	} {
		const n = 20000
		counts := make(map[int32]float64)
		c.p.Seed = 42
		for _, id := range draws(t, c.p, logits, n) {
			counts[id]++
		}
		want := naive(logits, c.p, c.xtc)
		var chi2, total float64
		for id, p := range want {
			d := counts[id] - p*n
			chi2 += d * d / (p * n)
			total += counts[id]
		}
		// Far beyond the 99.99th percentile of chi-square with up to 5 degrees of freedom, 25.7.
		if chi2 > 30 || total != n {
			t.Errorf("%s: chi-square %.1f, %g of %d draws among the %d tokens", c.name, chi2, total, n, len(want))
		}
	}
}

func TestSeed(t *testing.T) {
	logits := randomLogits(rand.New(rand.NewPCG(4, 4)), 300)
	logits[Argmax(logits)] = 5
	p := Params{Temperature: 1.5, XTCProbability: 0.5, Seed: 7}
	a, b := draws(t, p, logits, 100), draws(t, p, logits, 100)
	p.Seed = 8
	if c := draws(t, p, logits, 100); !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("seed 7 twice: %v\n%v\nseed 8: %v", a, b, c)
	}
}

// odd is a mask that lets odd ids through.
type odd struct{ accepted []int32 }

func (o *odd) Mask(logits []float32) {
	for i := 0; i < len(logits); i += 2 {
		logits[i] = negInf
	}
}
func (o *odd) Accept(id int32) { o.accepted = append(o.accepted, id) }

func TestMask(t *testing.T) {
	logits := []float32{9, 0, 8, 1, 7, 2}
	before := slices.Clone(logits)
	for _, p := range []Params{
		{}, {LogitBias: map[int32]float32{0: 100}}, {Temperature: 1, TopK: 2}, {Temperature: 1, TopP: 0.5}, {Temperature: 5, XTCProbability: 1, XTCThreshold: 0.01},
	} {
		m := &odd{}
		s := New(p)
		s.SetMask(m)
		s.Prime(0, 2, 4)
		var took []int32
		for range 50 {
			id, err := s.Next(logits)
			if err != nil || id%2 == 0 {
				t.Fatalf("%+v: got %d, error %v", p, id, err)
			}
			s.Accept(id)
			took = append(took, id)
		}
		if !slices.Equal(m.accepted, took) {
			t.Errorf("%+v: the mask was told of %v, chosen were %v", p, m.accepted, took)
		}
		if p.TopK == 2 && !slices.Equal(ids(distribution(t, s, logits)), []int32{3, 5}) {
			t.Error("top-k counts tokens that the mask forbids")
		}
		s.SetMask(nil)
		if id, _ := s.Next(logits); p.Temperature == 0 && id != 0 {
			t.Errorf("%+v: got %d after the mask's removal", p, id)
		}
	}
	s := New(Params{})
	s.SetMask(&odd{})
	if _, err := s.Next([]float32{3}); !errors.Is(err, ErrNothingLeft) {
		t.Errorf("the only token is forbidden: error %v", err)
	}
	if !slices.Equal(logits, before) {
		t.Errorf("the caller's logits became %v", logits)
	}
}

func TestValidate(t *testing.T) {
	inf, nan64 := math.Inf(1), math.NaN()
	for name, bad := range map[string][]Params{
		"temperature":        {{Temperature: -1}, {Temperature: nan64}, {Temperature: inf}},
		"top-k":              {{TopK: -1}},
		"top-p":              {{TopP: -0.1}, {TopP: 1.1}, {TopP: nan64}},
		"min-p":              {{MinP: -0.1}, {MinP: 1.1}},
		"typical-p":          {{TypicalP: -0.1}, {TypicalP: 2}},
		"repeat penalty":     {{RepeatPenalty: -1}, {RepeatPenalty: inf}, {RepeatPenalty: nan64}},
		"frequency penalty":  {{FrequencyPenalty: nan64}, {FrequencyPenalty: -inf}},
		"presence penalty":   {{PresencePenalty: nan64}, {PresencePenalty: inf}},
		"penalty last n":     {{PenaltyLastN: -2}},
		"DRY multiplier":     {{DRYMultiplier: -1}, {DRYMultiplier: inf}},
		"DRY base":           {{DRYBase: 0.5}, {DRYBase: inf}, {DRYBase: nan64}},
		"DRY allowed length": {{DRYAllowedLength: -1}},
		"DRY last n":         {{DRYLastN: -2}},
		"XTC probability":    {{XTCProbability: 1.5}},
		"XTC threshold":      {{XTCThreshold: 0.6}},
		"logit bias": {{LogitBias: map[int32]float32{-1: 1}}, {LogitBias: map[int32]float32{1: posInf}},
			{LogitBias: map[int32]float32{1: nan}}},
	} {
		for _, p := range bad {
			var e *RangeError
			if err := p.Validate(); !errors.As(err, &e) || e.Param != name {
				t.Errorf("%+v: found error %v, wanted a RangeError of %s", p, err, name)
			}
		}
	}
	for name, p := range map[string]Params{
		"zero": {},
		"largest": {Temperature: 5, TopK: 1 << 40, TopP: 1, MinP: 1, TypicalP: 1, XTCProbability: 1, XTCThreshold: 0.5, PenaltyLastN: -1, DRYLastN: -1,
			DRYBase: 1, FrequencyPenalty: -2, LogitBias: map[int32]float32{0: negInf}},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want bool
	}{
		{Params{}, true}, {Params{TopK: 5, TopP: 0.5, Seed: 3, RepeatPenalty: 1, PenaltyLastN: 9}, true}, {Params{Temperature: 0.1}, false},
		{Params{RepeatPenalty: 1.1}, false}, {Params{FrequencyPenalty: -1}, false}, {Params{PresencePenalty: 1}, false},
		{Params{DRYMultiplier: 1}, false}, {Params{LogitBias: map[int32]float32{1: 1}}, false},
	} {
		if got := c.p.Greedy(); got != c.want {
			t.Errorf("%+v: greedy %v, wanted %v", c.p, got, c.want)
		}
	}
}

func TestLogprobs(t *testing.T) {
	logits := []float32{1, 3, negInf, 3, nan, 2}
	sum := math.Exp(1) + 2*math.Exp(3) + math.Exp(2)
	lp := func(l float64) float64 { return l - math.Log(sum) }
	want := []Logprob{{1, lp(3)}, {3, lp(3)}, {5, lp(2)}, {0, lp(1)}}
	for n := range 8 {
		of, top := Logprobs(logits, 5, n)
		if math.Abs(of-lp(2)) > 1e-12 || len(top) != min(n, 4) {
			t.Fatalf("n %d: logprob %g, %d alternatives", n, of, len(top))
		}
		for i, g := range top {
			if g.ID != want[i].ID || math.Abs(g.Logprob-want[i].Logprob) > 1e-12 {
				t.Errorf("n %d: alternative %d is %+v, wanted %+v", n, i, g, want[i])
			}
		}
	}
	for name, id := range map[string]int32{"banned": 2, "not a number": 4, "beyond": 6, "negative": -1} {
		if of, _ := Logprobs(logits, id, 0); !math.IsInf(of, -1) {
			t.Errorf("%s: logprob %g, wanted -Inf", name, of)
		}
	}
	if of, top := Logprobs(nil, 0, 3); !math.IsInf(of, -1) || len(top) != 0 {
		t.Errorf("no logits: %g, %v", of, top)
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for range 50 { // probabilities sum to 1 and agree with the plain distribution
		logits := randomLogits(rng, 900)
		d := distribution(t, New(Params{Temperature: 1}), logits)
		_, top := Logprobs(logits, 0, len(logits))
		var sum float64
		for i, g := range top {
			sum += math.Exp(g.Logprob)
			if math.Abs(math.Exp(g.Logprob)-d[g.ID]) > 1e-12 {
				t.Fatalf("token %d: %g, wanted %g", g.ID, math.Exp(g.Logprob), d[g.ID])
			}
			if i > 0 && (top[i-1].Logprob < g.Logprob || top[i-1].Logprob == g.Logprob && top[i-1].ID > g.ID) {
				t.Fatalf("%+v stands before %+v", top[i-1], g)
			}
		}
		if math.Abs(sum-1) > 1e-9 || len(top) != len(d) {
			t.Fatalf("%d alternatives of %d sum to %g", len(top), len(d), sum)
		}
	}
}

// TestGuide: docs/sampling.md has a row for every parameter.
func TestGuide(t *testing.T) {
	b, err := os.ReadFile("../../docs/sampling.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Params]()) {
		if !strings.Contains(string(b), "| `"+f.Name+"` |") {
			t.Errorf("docs/sampling.md has no row that starts with `%s`", f.Name)
		}
	}
}

// A seed of 0 stands for one that is drawn, which the sampler tells.
func TestSeedDrawn(t *testing.T) {
	seen := map[uint64]bool{}
	for range 8 {
		seen[New(Params{Temperature: 1}).Seed()] = true
	}
	if seen[0] || len(seen) < 2 {
		t.Errorf("drew the seeds %v", seen)
	}
	logits := make([]float32, 1000)
	draw := func(seed uint64) (ids []int32) {
		s := New(Params{Temperature: 1, Seed: seed})
		for range 16 {
			id, err := s.Next(logits)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	first := New(Params{Temperature: 1})
	again := draw(first.Seed())
	for i, want := range again {
		if got, err := first.Next(logits); err != nil || got != want {
			t.Fatalf("choice %d: found %d, %v; with the seed that it told: %d", i, got, err, want)
		}
	}
	if s := New(Params{Temperature: 1, Seed: 7}); s.Seed() != 7 {
		t.Errorf("seed 7 became %d", s.Seed())
	}
}
