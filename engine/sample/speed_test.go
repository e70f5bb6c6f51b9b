package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// language makes logits of the size and shape of a large model's: 152k tokens, a few likely.
func language() []float32 {
	rng := rand.New(rand.NewPCG(1, 152))
	l := make([]float32, 151936)
	for rank, id := range rng.Perm(len(l)) {
		l[id] = float32(22 - 2*math.Log(float64(1+rank)) + 0.5*rng.NormFloat64())
	}
	return l
}

var speedCases = []struct {
	name string
	p    Params
}{
	{"greedy", Params{}},
	{"temperature", Params{Temperature: 0.8}},
	{"top-k 40", Params{Temperature: 0.8, TopK: 40}},
	{"top-k 5000", Params{Temperature: 0.8, TopK: 5000}},
	{"top-p 0.95", Params{Temperature: 0.8, TopP: 0.95}},
	{"min-p 0.05", Params{Temperature: 0.8, MinP: 0.05}},
	{"typical-p 0.95", Params{Temperature: 0.8, TypicalP: 0.95}},
	{"common", Params{Temperature: 0.7, TopK: 20, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.05}},
	{"all", Params{Temperature: 0.7, TopK: 40, TypicalP: 0.98, TopP: 0.95, MinP: 0.02, RepeatPenalty: 1.05, FrequencyPenalty: 0.1,
		PenaltyLastN: 256, DRYMultiplier: 0.8, DRYLastN: 4096, XTCProbability: 0.5, LogitBias: map[int32]float32{7: negInf}}},
}

// primed is a sampler after a prompt of 8192 tokens.
func primed(p Params) *Sampler {
	s := New(p)
	rng := rand.New(rand.NewPCG(2, 152))
	for range 8192 {
		s.Prime(int32(rng.IntN(3000)))
	}
	return s
}

func TestNoAllocations(t *testing.T) {
	logits := language()
	for _, c := range speedCases {
		s := primed(c.p)
		step := func() {
			id, err := s.Next(logits)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(id)
		}
		for range 3 {
			step()
		}
		if n := testing.AllocsPerRun(5, step); n > 0 {
			t.Errorf("%s: %g allocations a token", c.name, n)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	logits := language()
	for _, c := range speedCases {
		b.Run(c.name, func(b *testing.B) {
			s := primed(c.p)
			b.ReportAllocs()
			for b.Loop() {
				id, err := s.Next(logits)
				if err != nil {
					b.Fatal(err)
				}
				s.Accept(id)
			}
		})
	}
}

func BenchmarkLogprobs(b *testing.B) {
	logits := language()
	for b.Loop() {
		Logprobs(logits, 7, 20)
	}
}

// BenchmarkSorted is what the selection spares: the same top-p after sorting everything.
func BenchmarkSorted(b *testing.B) {
	logits := language()
	for b.Loop() {
		naive(logits, Params{Temperature: 0.8, TopP: 0.95}, false)
	}
}
