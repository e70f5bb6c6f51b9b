package sample

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// FuzzNext: with any valid parameters and any logits at all, a choice is a token that may be
// chosen, or one of the two errors; probabilities sum to 1; and the same again gives the same.
func FuzzNext(f *testing.F) {
	f.Add([]byte("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x80\xff\x00\x00\xc0\x7f"), []byte{1, 2, 1, 2}, 0.8, 0.9, 0.05, 0.9, 1.1, 0.5, 0.8, 0.5, 40, uint64(1))
	f.Add([]byte{}, []byte{}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, uint64(0))
	f.Add([]byte("\xff\xff\x7f\x7f\xff\xff\x7f\xff\x01\x00\x00\x00"), []byte{0, 0, 0, 0, 0}, 1e-300, 1e-300, 1e-300, 1e-300, 1e-300, -1e300, 1e300, 1.0, 1, uint64(9))
	f.Add([]byte("\x00\x00\x80\x3f\x00\x00\x00\x40"), []byte{}, 5e-324, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, uint64(3)) // 1/temperature overflows
	f.Add([]byte("\x00\x00\x80\x3f\x00\x00\x00\x40"), []byte{}, 5e-324, 0.9, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0, uint64(3))
	f.Fuzz(func(t *testing.T, raw, history []byte, temperature, topP, minP, typicalP, repeat, presence, dry, xtc float64, topK int, seed uint64) {
		logits := make([]float32, len(raw)/4)
		for i := range logits {
			logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		p := Params{Temperature: temperature, TopK: topK, TopP: topP, MinP: minP, TypicalP: typicalP, RepeatPenalty: repeat, PresencePenalty: presence,
			FrequencyPenalty: -presence / 2, PenaltyLastN: int(seed % 9), DRYMultiplier: dry, DRYBase: 1 + dry, XTCProbability: xtc, XTCThreshold: minP / 2,
			Seed: max(seed, 1), LogitBias: map[int32]float32{1: negInf, 2: float32(-dry)}, DRYBreakers: []int32{3}}
		if p.Validate() != nil {
			return
		}
		a, b := New(p), New(p)
		for _, h := range history {
			a.Accept(int32(h) - 2)
			b.Prime(int32(h) - 2)
		}
		for range 3 {
			id, err := a.Next(logits)
			again, err2 := b.Next(logits)
			if id != again || (err == nil) != (err2 == nil) {
				t.Fatalf("chose %d (%v), again %d (%v)", id, err, again, err2)
			}
			if err != nil {
				if !errors.Is(err, ErrNotFinite) && !errors.Is(err, ErrNothingLeft) {
					t.Fatal(err)
				}
				return
			}
			if !isFinite(logits, int(id)) || id == 1 {
				t.Fatalf("chose token %d, logit %g", id, logits[id])
			}
			if temperature > 0 && len(a.kept) > 0 { // by temperature alone nothing is listed
				checkKept(t, a)
			}
			of, top := Logprobs(logits, id, 5)
			if !(of <= 0) || len(top) == 0 || top[0].Logprob < of {
				t.Fatalf("token %d has logprob %g, the likeliest %v", id, of, top)
			}
			a.Accept(id)
			b.Accept(id)
		}
	})
}

// checkKept looks at what the last draw was from.
func checkKept(t *testing.T, s *Sampler) {
	t.Helper()
	var sum float64
	last := int32(-1)
	for _, c := range s.kept {
		if c.id <= last || !(c.weight >= 0 && c.weight <= 1) {
			t.Fatalf("candidate %+v after %d", c, last)
		}
		last = c.id
		sum += c.weight
	}
	if !(sum >= 1) {
		t.Fatalf("weights sum to %g, though the largest is 1", sum)
	}
}
