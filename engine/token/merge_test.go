package token

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive merges as the definition reads: find the lowest rank, leftmost; join; again.
func naive(j joiner, word string, list []symbol) []symbol {
	for {
		best, bestRank, bestID := -1, uint32(0), int32(0)
		for i := 0; i+1 < len(list); i++ {
			if id, rank, ok := j.join(word, &list[i], &list[i+1]); ok && (best < 0 || rank < bestRank) {
				best, bestRank, bestID = i, rank, id
			}
		}
		if best < 0 {
			return list
		}
		list[best].end, list[best].id = list[best+1].end, bestID
		list = slices.Delete(list, best+1, best+2)
	}
}

// ruleJoiner has random rules over a few symbols.
type ruleJoiner map[[2]int32]merge

func (r ruleJoiner) join(_ string, left, right *symbol) (int32, uint32, bool) {
	m, ok := r[[2]int32{left.id, right.id}]
	return m.id, m.rank, ok
}

// TestMergeNaive: the heap gives what the definition gives, with many equal ranks too.
func TestMergeNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		rules := ruleJoiner{}
		for range 30 {
			rules[[2]int32{rng.Int32N(9), rng.Int32N(9)}] = merge{rng.Uint32N(5), rng.Int32N(9)}
		}
		word := string(make([]byte, rng.IntN(40)))
		m := merger{joiner: rules}
		m.reset(word)
		for range len(word) {
			m.add(1, rng.Int32N(4))
		}
		want := naive(rules, word, slices.Clone(m.list))
		m.run()
		var got []symbol
		for i := int32(0); i >= 0 && len(m.list) > 0; i = m.list[i].next {
			got = append(got, m.list[i])
		}
		show := func(list []symbol) (s string) {
			for _, x := range list {
				s += fmt.Sprintf("%d-%d:%d ", x.start, x.end, x.id)
			}
			return s
		}
		if show(got) != show(want) {
			t.Fatalf("round %d:\ngot  %s\nwant %s", round, show(got), show(want))
		}
	}
}

// TestSPMSplit: cutting at words first changes nothing, where the vocabulary allows it.
func TestSPMSplit(t *testing.T) {
	tok := mustNew(t, metadata(t, "llama", tinySPM(hello...)))
	m := tok.model.(*spm)
	if !m.splits {
		t.Fatal("the vocabulary forbids the cut")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var text []byte
		for range rng.IntN(30) {
			text = append(text, " helo"[rng.IntN(5)])
		}
		m.splits = true
		cut := tok.Encode(string(text), false, false)
		m.splits = false
		if whole := tok.Encode(string(text), false, false); !slices.Equal(cut, whole) {
			t.Fatalf("%q: %s, uncut %s", text, texts(tok, cut), texts(tok, whole))
		}
	}
	across := mustNew(t, metadata(t, "llama", tinySPM(append(slices.Clone(hello), piece{"o▁", normal, 0})...)))
	if across.model.(*spm).splits {
		t.Error("a piece that goes on into a space doesn't forbid the cut")
	}
	if got, want := texts(across, across.Encode("o he", false, false)), "▁|o▁|he"; got != want {
		t.Errorf("tokens %s, want %s", got, want)
	}
}

func TestRank(t *testing.T) {
	scores := []float32{1e30, 3, 0.5, 0, -0.5, -3, -1e30}
	for i := 1; i < len(scores); i++ {
		if rank(scores[i-1]) >= rank(scores[i]) {
			t.Errorf("rank(%g) = %#x, rank(%g) = %#x: want it lower", scores[i-1], rank(scores[i-1]), scores[i], rank(scores[i]))
		}
	}
}
