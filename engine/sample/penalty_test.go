package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPenalties(t *testing.T) {
	logits := []float32{2, -2, 0, 1, negInf, nan}
	for _, c := range []struct {
		name    string
		p       Params
		history []int32
		want    []float32
	}{
		{"nothing seen", Params{RepeatPenalty: 2}, nil, []float32{2, -2, 0, 1, negInf, nan}},
		{"repeat divides a positive logit", Params{RepeatPenalty: 2}, []int32{0}, []float32{1, -2, 0, 1, negInf, nan}},
		{"repeat multiplies a negative one", Params{RepeatPenalty: 2}, []int32{1}, []float32{2, -4, 0, 1, negInf, nan}},
		{"repeat leaves 0", Params{RepeatPenalty: 2}, []int32{2}, []float32{2, -2, 0, 1, negInf, nan}},
		{"repeat counts once", Params{RepeatPenalty: 2}, []int32{0, 0, 0}, []float32{1, -2, 0, 1, negInf, nan}},
		{"repeat below 1 rewards", Params{RepeatPenalty: 0.5}, []int32{0, 1}, []float32{4, -1, 0, 1, negInf, nan}},
		{"frequency counts each", Params{FrequencyPenalty: 0.5}, []int32{0, 0, 1}, []float32{1, -2.5, 0, 1, negInf, nan}},
		{"presence counts once", Params{PresencePenalty: 0.5}, []int32{0, 0, 1}, []float32{1.5, -2.5, 0, 1, negInf, nan}},
		{"negative ones reward", Params{PresencePenalty: -1, FrequencyPenalty: -1}, []int32{1, 1}, []float32{2, 1, 0, 1, negInf, nan}},
		{"all three, repeat first", Params{RepeatPenalty: 2, FrequencyPenalty: 0.25, PresencePenalty: 1}, []int32{0, 0}, []float32{-0.5, -2, 0, 1, negInf, nan}},
		{"last 2", Params{PresencePenalty: 1, PenaltyLastN: 2}, []int32{0, 1, 3}, []float32{2, -3, 0, 0, negInf, nan}},
		{"64 by default", Params{PresencePenalty: 1}, append([]int32{0, 1}, slices.Repeat([]int32{3}, 63)...), []float32{2, -3, 0, 0, negInf, nan}},
		{"all", Params{PresencePenalty: 1, PenaltyLastN: -1}, append([]int32{0, 1}, slices.Repeat([]int32{3}, 63)...), []float32{1, -3, 0, 0, negInf, nan}},
		{"what is banned stays so", Params{RepeatPenalty: 0.5, PresencePenalty: -3}, []int32{4, 5}, logits},
		{"ids beyond the vocabulary", Params{RepeatPenalty: 2, DRYMultiplier: 1}, []int32{6, -1, 1 << 30, 6, -1}, logits},
		{"too large to add", Params{PresencePenalty: 1e308, FrequencyPenalty: 1e308}, []int32{0, 0}, []float32{-math.MaxFloat32, -2, 0, 1, negInf, nan}},
		{"a reward too large", Params{RepeatPenalty: 1e-300}, []int32{0}, []float32{math.MaxFloat32, -2, 0, 1, negInf, nan}},
	} {
		s := New(c.p)
		s.Prime(c.history...)
		before := slices.Clone(logits)
		if got := s.change(before); !equalLogits(got, c.want) {
			t.Errorf("%s: got %v, wanted %v", c.name, got, c.want)
		}
		if !equalLogits(before, logits) {
			t.Errorf("%s: the caller's logits became %v", c.name, before)
		}
		if slices.ContainsFunc(s.counts, func(n int32) bool { return n != 0 }) {
			t.Errorf("%s: counts are left over", c.name)
		}
	}
}

func equalLogits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x == y || x != x && y != y })
}

// TestPenaltiesPenalize: whatever a logit's sign, a penalty above its neutral value never
// makes a seen token likelier and never moves another.
func TestPenaltiesPenalize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		logits := randomLogits(rng, 200)
		p := Params{RepeatPenalty: 1 + rng.Float64()*3, FrequencyPenalty: rng.Float64(), PresencePenalty: rng.Float64(), PenaltyLastN: -1}
		s := New(p)
		seen := make(map[int32]bool)
		for range rng.IntN(100) {
			id := int32(rng.IntN(200))
			seen[id] = true
			s.Accept(id)
		}
		for i, l := range s.change(logits) {
			if seen[int32(i)] && l > logits[i] || !seen[int32(i)] && l != logits[i] && l == l {
				t.Fatalf("%+v: token %d, seen %v, went from %g to %g", p, i, seen[int32(i)], logits[i], l)
			}
		}
	}
}

// TestHistory: forgetting what no penalty looks back on changes nothing.
func TestHistory(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, p := range []Params{{PresencePenalty: 1, PenaltyLastN: 1}, {FrequencyPenalty: 1, PenaltyLastN: 7}, {RepeatPenalty: 2, PenaltyLastN: 7, DRYMultiplier: 1, DRYLastN: 20}} {
		s := New(p)
		var all []int32
		for range 500 {
			id := int32(rng.IntN(10))
			s.Accept(id)
			all = append(all, id)
			whole := New(p)
			whole.history = all
			logits := randomLogits(rng, 10)
			if a, b := s.change(logits), whole.change(logits); !equalLogits(a, b) {
				t.Fatalf("%+v after %d tokens: %v, with the whole history %v", p, len(all), a, b)
			}
		}
		if len(s.history) > 2*s.lookBack {
			t.Errorf("%+v: %d tokens are kept to look back on %d", p, len(s.history), s.lookBack)
		}
	}
}

func TestDRY(t *testing.T) {
	const a, b, c, d, nl = 0, 1, 2, 3, 4
	for _, tc := range []struct {
		name    string
		p       Params
		history []int32
		want    []float32 // penalties
	}{
		{"no repeat", Params{}, []int32{a, b, c}, []float32{0, 0, 0, 0, 0}},
		{"one token is free", Params{}, []int32{a, b, a}, []float32{0, 0, 0, 0, 0}},
		{"two are not", Params{}, []int32{a, b, c, a, b}, []float32{0, 0, 1, 0, 0}},
		{"three cost the base more", Params{}, []int32{a, b, c, d, a, b, c}, []float32{0, 0, 0, 2, 0}},
		{"allowed length 1", Params{DRYAllowedLength: 1}, []int32{a, b, a}, []float32{0, 1, 0, 0, 0}},
		{"allowed length 3", Params{DRYAllowedLength: 3}, []int32{a, b, c, a, b}, []float32{0, 0, 0, 0, 0}},
		{"the longest repeat counts", Params{}, []int32{b, c, d, nl, a, b, c, d, nl, a, b, c}, []float32{0, 0, 0, 32, 0}},
		{"two continuations", Params{}, []int32{a, b, c, a, b, d, a, b}, []float32{0, 0, 1, 1, 0}},
		{"a loop of one", Params{}, []int32{a, a, a, a}, []float32{2, 0, 0, 0, 0}},
		{"not across a breaker", Params{DRYBreakers: []int32{b}}, []int32{a, b, c, d, a, b, c}, []float32{0, 0, 0, 0, 0}},
		{"after a breaker", Params{DRYBreakers: []int32{nl}}, []int32{a, nl, b, c, d, a, nl, b, c}, []float32{0, 0, 0, 1, 0}},
		{"at a breaker", Params{DRYBreakers: []int32{c}}, []int32{a, b, c, d, a, b, c}, []float32{0, 0, 0, 0, 0}},
		{"a breaker costs nothing", Params{DRYBreakers: []int32{d}}, []int32{a, b, c, d, a, b, c}, []float32{0, 0, 0, 0, 0}},
		{"out of sight", Params{DRYLastN: 4}, []int32{a, b, c, a, b}, []float32{0, 0, 0, 0, 0}},
		{"in sight", Params{DRYLastN: 5}, []int32{a, b, c, a, b}, []float32{0, 0, 1, 0, 0}},
	} {
		tc.p.DRYMultiplier, tc.p.DRYBase = 1, 2
		s := New(tc.p)
		s.Prime(tc.history...)
		got := s.change(make([]float32, 5))
		for i := range got {
			if got[i] != -tc.want[i] {
				t.Errorf("%s: penalties %v, wanted %v", tc.name, got, tc.want)
				break
			}
		}
	}
	s := New(Params{DRYMultiplier: 1}) // the penalty of a long repeat overflows, and is no ban
	s.Prime(make([]int32, 3000)...)
	if got := s.change([]float32{5, negInf}); got[0] != -math.MaxFloat32 {
		t.Errorf("3000 repeats: logit %g", got[0])
	}
	if id, err := s.Next([]float32{5, negInf}); id != 0 || err != nil {
		t.Errorf("the only token there is: got %d, error %v", id, err)
	}
}

// TestCommonSuffixes holds the linear algorithm against the definition.
func TestCommonSuffixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	var z []int32
	for range 500 {
		seen := make([]int32, rng.IntN(60))
		for i := range seen {
			seen[i] = int32(rng.IntN(1 + rng.IntN(4)))
		}
		z = commonSuffixes(z, seen)
		for k := 1; k < len(seen); k++ {
			n, want := len(seen), 0
			for want < n-k && seen[n-1-want] == seen[n-1-k-want] {
				want++
			}
			if int(z[k]) != want {
				t.Fatalf("%v: z[%d] = %d, wanted %d", seen, k, z[k], want)
			}
		}
	}
}
