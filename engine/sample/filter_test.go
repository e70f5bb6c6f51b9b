package sample

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestAgainstNaive holds the whole chain against its definitions, on many shapes of logits.
func TestAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(vs ...float64) float64 { return vs[rng.IntN(len(vs))] }
	edges := 0
	for i := range 600 {
		n := []int{1, 2, 7, 300, 5000}[rng.IntN(5)]
		logits := randomLogits(rng, n)
		p := Params{
			Temperature: pick(0.01, 0.7, 1, 3),
			TopK:        int(pick(0, 0, 1, 3, 40, 1000)),
			TypicalP:    pick(0, 0, 0.17, 0.52, 0.93),
			TopP:        pick(0, 0, 0.13, 0.57, 0.93, 0.9991),
			MinP:        pick(0, 0, 0.0123, 0.345, 1),
		}
		xtc := rng.IntN(3) == 0
		if xtc {
			p.XTCProbability, p.XTCThreshold = 1, pick(0.0321, 0.123, 0.5)
		}
		got, want := distribution(t, New(p), logits), naive(logits, p, xtc)
		same := slices.Equal(ids(got), ids(want))
		if !same {
			// Sums in another order may round to the other side of a threshold, which moves one token.
			if edges++; edges > 6 || len(got)-len(want) != 1 && len(want)-len(got) != 1 {
				t.Fatalf("case %d, %d logits, %+v: kept %d tokens, wanted %d", i, n, p, len(got), len(want))
			}
		}
		var sum float64
		for id, pr := range got {
			sum += pr
			if w := want[id]; same && math.Abs(pr-w) > 1e-12 {
				t.Fatalf("case %d, %+v: token %d has probability %g, wanted %g", i, p, id, pr, w)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("case %d: probabilities sum to %g", i, sum)
		}
	}
	t.Logf("%d of 600 on the edge", edges)
}

func TestTopK(t *testing.T) {
	logits := []float32{1, 5, 5, negInf, 5, 2, nan}
	for _, c := range []struct {
		name string
		k    int
		want []int32
	}{
		{"off", 0, []int32{0, 1, 2, 4, 5}},
		{"one of equals: the lowest id", 1, []int32{1}},
		{"two of three equals", 2, []int32{1, 2}},
		{"all equals", 3, []int32{1, 2, 4}},
		{"one more", 4, []int32{1, 2, 4, 5}},
		{"as many as can be chosen", 5, []int32{0, 1, 2, 4, 5}},
		{"more than can be chosen", 6, []int32{0, 1, 2, 4, 5}},
		{"more than there are", 100, []int32{0, 1, 2, 4, 5}},
	} {
		if got := ids(distribution(t, New(Params{Temperature: 1, TopK: c.k}), logits)); !slices.Equal(got, c.want) {
			t.Errorf("%s: kept %v, wanted %v", c.name, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 { // exactly k, whatever the shape; large enough for the bound by blocks
		logits := randomLogits(rng, 20000)
		k := 1 + rng.IntN(3000)
		if got := distribution(t, New(Params{Temperature: 1, TopK: k}), logits); len(got) != k {
			t.Fatalf("top-k %d kept %d", k, len(got))
		}
	}
}

func TestTopPIsTheSmallestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		logits := randomLogits(rng, 1+rng.IntN(3000))
		p := rng.Float64()
		all := distribution(t, New(Params{Temperature: 1}), logits)
		kept := distribution(t, New(Params{Temperature: 1, TopP: p}), logits)
		var sum float64
		least := 2.0
		for id := range kept {
			sum += all[id]
			least = min(least, all[id])
		}
		if sum < p-1e-9 || sum-least >= p+1e-9 {
			t.Fatalf("top-p %g kept %g; without the least likely %g", p, sum, sum-least)
		}
		for id, q := range all {
			if _, ok := kept[id]; !ok && q > least {
				t.Fatalf("top-p %g dropped %g and kept %g", p, q, least)
			}
		}
	}
}

func TestMinP(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		logits := randomLogits(rng, 1+rng.IntN(3000))
		p := rng.Float64()
		all := distribution(t, New(Params{Temperature: 1}), logits)
		kept := distribution(t, New(Params{Temperature: 1, MinP: p}), logits)
		top := all[int32(Argmax(logits))]
		for id, q := range all {
			if _, ok := kept[id]; ok != (q >= p*top) && math.Abs(q-p*top) > 1e-12 {
				t.Fatalf("min-p %g, largest %g: token with %g kept: %v", p, top, q, ok)
			}
		}
	}
}

// TestKeepsTheMostLikely: what doc.go promises of top-k, top-p and min-p, and of every
// stage that at least one is left.
func TestKeepsTheMostLikely(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		logits := randomLogits(rng, 1+rng.IntN(2000))
		best := int32(Argmax(logits))
		for name, p := range map[string]Params{
			"top-k": {TopK: 1 + rng.IntN(50)}, "top-p": {TopP: rng.Float64()}, "min-p": {MinP: rng.Float64()},
			"all three": {TopK: 1 + rng.IntN(50), TopP: rng.Float64(), MinP: rng.Float64()},
		} {
			p.Temperature = 1
			if _, ok := distribution(t, New(p), logits)[best]; !ok {
				t.Fatalf("%s, %+v: the most likely token is gone", name, p)
			}
		}
		for name, p := range map[string]Params{
			"typical": {TypicalP: rng.Float64()}, "XTC": {XTCProbability: 1, XTCThreshold: rng.Float64() / 2},
		} {
			p.Temperature = 0.001 // removing the top must not make the rest vanish
			if len(distribution(t, New(p), logits)) == 0 {
				t.Fatalf("%s: nothing is left", name)
			}
		}
	}
}

func TestTypical(t *testing.T) {
	// p = 0.6 and eight of 0.05: entropy 1.50; surprises 0.51 and 3.00, so the likely one is
	// nearer. With a flat-ish rest of forty it turns.
	log := func(p float64) float32 { return float32(math.Log(p)) }
	near := append([]float32{log(0.6)}, slices.Repeat([]float32{log(0.05)}, 8)...)
	far := append([]float32{log(0.2)}, slices.Repeat([]float32{log(0.02)}, 40)...)
	for _, c := range []struct {
		name   string
		logits []float32
		p      float64
		want   []int32
	}{
		{"the likely token is typical", near, 0.5, []int32{0}},
		{"and one more", near, 0.62, []int32{0, 1}},
		{"the likely token is not typical", far, 0.03, []int32{1, 2}},
	} {
		if got := ids(distribution(t, New(Params{Temperature: 1, TypicalP: c.p}), c.logits)); !slices.Equal(got, c.want) {
			t.Errorf("%s: kept %v, wanted %v", c.name, got, c.want)
		}
	}
}

func TestXTC(t *testing.T) {
	log := func(p float64) float32 { return float32(math.Log(p)) }
	logits := []float32{log(0.05), log(0.4), log(0.2), log(0.3), log(0.05)}
	for _, c := range []struct {
		name      string
		threshold float64
		want      []int32
	}{
		{"three top choices: the least of them stays", 0.1, []int32{0, 2, 4}},
		{"two", 0.25, []int32{0, 2, 3, 4}},
		{"one: it stays", 0.35, []int32{0, 1, 2, 3, 4}},
		{"none", 0.5, []int32{0, 1, 2, 3, 4}},
		{"all", 0.01, []int32{4}},
		{"0 stands for 0.1", 0, []int32{0, 2, 4}},
	} {
		p := Params{Temperature: 1, XTCProbability: 1, XTCThreshold: c.threshold}
		if got := ids(distribution(t, New(p), logits)); !slices.Equal(got, c.want) {
			t.Errorf("%s: kept %v, wanted %v", c.name, got, c.want)
		}
	}
	s, acted := New(Params{Temperature: 1, XTCProbability: 0.3, Seed: 1}), 0
	const n = 5000
	for range n {
		if len(distribution(t, s, logits)) == 3 {
			acted++
		}
	}
	if f := float64(acted) / n; math.Abs(f-0.3) > 5*math.Sqrt(0.3*0.7/n) {
		t.Errorf("probability 0.3: acted in %.3f of the choices", f)
	}
}

// TestOrder: cases that come out otherwise if two stages change places.
func TestOrder(t *testing.T) {
	log := func(p float64) float32 { return float32(math.Log(p)) }
	logits := []float32{log(0.5), log(0.3), log(0.12), log(0.08)}
	for _, c := range []struct {
		name string
		p    Params
		want []int32
	}{
		{"temperature after top-p", Params{Temperature: 100, TopP: 0.49}, []int32{0}},
		{"temperature after min-p", Params{Temperature: 100, MinP: 0.7}, []int32{0}},
		{"top-k before top-p", Params{Temperature: 1, TopK: 2, TopP: 0.61}, []int32{0}},
		{"top-p before min-p", Params{Temperature: 1, TopP: 0.81, MinP: 0.2}, []int32{0, 1, 2}},
		{"bias before penalties", Params{Temperature: 1, TopK: 1, LogitBias: map[int32]float32{0: -10, 2: 5}, RepeatPenalty: 2}, []int32{2}},
		{"XTC after min-p", Params{Temperature: 1, MinP: 0.5, XTCProbability: 1, XTCThreshold: 0.35}, []int32{1}},
	} {
		s := New(c.p)
		s.Accept(2)
		if got := ids(distribution(t, s, logits)); !slices.Equal(got, c.want) {
			t.Errorf("%s: kept %v, wanted %v", c.name, got, c.want)
		}
	}
}

// TestIndependence: min-p and top-k commute, and where a token stands in the vocabulary
// changes nothing.
func TestIndependence(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 100 {
		n := 2 + rng.IntN(2000)
		logits := randomLogits(rng, n)
		s := New(Params{Temperature: 1, TopK: 1 + rng.IntN(100), MinP: rng.Float64()})
		a := ids(distribution(t, s, logits))
		alone := New(Params{Temperature: 1, MinP: s.p.MinP})
		only := slices.Repeat([]float32{negInf}, n)
		for _, id := range ids(distribution(t, alone, logits)) {
			only[id] = logits[id]
		}
		b := ids(distribution(t, New(Params{Temperature: 1, TopK: s.p.TopK}), only))
		if !slices.Equal(a, b) {
			t.Fatalf("top-k then min-p keeps %v, min-p then top-k %v", a, b)
		}

		for i := range logits { // no ties, as ids break them
			logits[i] = float32(rng.NormFloat64() * 4)
		}
		to := rng.Perm(n)
		moved := make([]float32, n)
		for i, j := range to {
			moved[j] = logits[i]
		}
		p := Params{Temperature: 0.8, TopK: 50, TypicalP: 0.9, TopP: 0.83, MinP: 0.04}
		before, after := distribution(t, New(p), logits), distribution(t, New(p), moved)
		if len(before) != len(after) {
			t.Fatalf("kept %d tokens, %d after moving them", len(before), len(after))
		}
		for id, q := range before {
			if math.Abs(after[int32(to[id])]-q) > 1e-12 {
				t.Fatalf("token %d has %g, moved to %d %g", id, q, to[id], after[int32(to[id])])
			}
		}
	}
}

// TestWithoutEffect: filters that remove nothing leave every draw as it was.
func TestWithoutEffect(t *testing.T) {
	logits := randomLogits(rand.New(rand.NewPCG(13, 2)), 500)
	want := draws(t, Params{Temperature: 0.9, Seed: 5}, logits, 200)
	for name, p := range map[string]Params{
		"top-k of all":                     {TopK: 500},
		"top-p 1":                          {TopP: 1},
		"typical-p 1":                      {TypicalP: 1},
		"min-p next to nothing":            {MinP: 1e-300},
		"repeat penalty 1":                 {RepeatPenalty: 1},
		"bias 0":                           {LogitBias: map[int32]float32{3: 0}},
		"bias beyond the vocabulary":       {LogitBias: map[int32]float32{500: 9}},
		"penalties without a history":      {RepeatPenalty: 2, FrequencyPenalty: 1, PresencePenalty: 1},
		"DRY without a history":            {DRYMultiplier: 1},
		"parameters of what is turned off": {XTCThreshold: 0.5, DRYBase: 3, PenaltyLastN: -1},
	} {
		p.Temperature, p.Seed = 0.9, 5
		if got := draws(t, p, logits, 200); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the draws differ", name)
		}
	}
}

func draws(t testing.TB, p Params, logits []float32, n int) []int32 {
	t.Helper()
	s := New(p)
	var out []int32
	for range n {
		id, err := s.Next(logits)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}
