package engine_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/testdata"
)

// TestShrink: another program takes VRAM at a step of our choice, again and again, down to
// the least; the logits are the bits of a model that was left in peace, in prefill and
// decode, and what was given back is free.
func TestShrink(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	base := setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 8, Discrete: true}})
	var ids []token.ID
	for i := range 40 {
		ids = append(ids, token.ID(1+7*i%500))
	}
	plain := load(t, path, base)
	want := prefillAndDecode(t, plain, ids)
	all, least := engine.DetailsOf(plain).Plan.DeviceBytes, leastBudget(t, path, base)
	for _, c := range []struct {
		name   string
		vram   int64 // 0: all resident
		host   int64
		change func(*engine.Setup)
	}{
		{"all resident, then from disk", 0, 1, nil},
		{"all resident, then from RAM", 0, 1 << 30, nil},
		{"streamed, then more", (all + least) / 2, 1, nil},
		{"streamed from RAM and disk, then more", (all + least) / 2, 4 << 20, nil},
		{"one queue", 0, 1 << 30, func(o *engine.Setup) { o.Tuning.OneQueue = true }},
		{"in place", 0, 1, func(o *engine.Setup) { o.Tuning.Discrete = false }},
		{"two lanes", 0, 1, func(o *engine.Setup) { *o = engine.WithLanes(*o, 2) }},
	} {
		if testing.Short() && c.vram == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var step, taken atomic.Int64
			free := func() int64 {
				if n := step.Add(1); n%3 == 0 && n > 1 { // during the prefill, and while decoding
					taken.Add(1)
					return -(all - least) / 6
				}
				return 1 << 30
			}
			o := base
			o.DeviceBytes, o.HostBytes = c.vram, c.host
			if c.change != nil {
				c.change(&o)
			}
			m := load(t, path, engine.WithHeadroom(o, free, 128<<10))
			before := engine.DetailsOf(m).Plan
			if before.InPlace && o.Tuning.Discrete {
				t.Fatal("the plan is not that of a discrete device")
			}
			got := prefillAndDecode(t, m, ids)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("logit %d: got %g, wanted the bits of %g", i, got[i], want[i])
				}
			}
			p, shrinks := engine.DetailsOf(m).Plan, m.Stats().Shrinks
			used := m.Stats().VRAMBytes
			if used != p.DeviceBytes || p.DeviceBytes >= before.DeviceBytes || p.StreamedBytes <= before.StreamedBytes || len(p.Ring) == 0 {
				t.Errorf("%d bytes in use, %d planned, %d before; %d streamed, %d before", used, p.DeviceBytes, before.DeviceBytes, p.StreamedBytes, before.StreamedBytes)
			}
			if len(shrinks) < 2 || len(shrinks) > int(taken.Load()) || shrinks[0].BeforeBytes != before.DeviceBytes || shrinks[len(shrinks)-1].AfterBytes != used {
				t.Errorf("shrinks %v", shrinks)
			}
			for i, s := range shrinks {
				if s.AfterBytes >= s.BeforeBytes || i > 0 && s.BeforeBytes != shrinks[i-1].AfterBytes {
					t.Errorf("shrink %d: %v", i, s)
				}
			}
			// To the end: more can't be given than the least, and the model goes on.
			if got := prefillAndDecode(t, m, ids); !slices.Equal(got, want) {
				t.Error("the logits of a second run differ")
			}
			if used := m.Stats().VRAMBytes; used > least+256<<10 {
				t.Errorf("%d bytes are in use, the least is %d", used, least)
			}
		})
	}
}

// prefillAndDecode runs most of ids as a prompt, the rest one by one, and returns all logits.
func prefillAndDecode(t *testing.T, m *engine.Model, ids []token.ID) []float32 {
	t.Helper()
	s := newSession(t, m)
	defer s.Close()
	var all []float32
	row, err := s.Forward(context.Background(), ids[:25])
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, row...)
	for row, err := range s.Logits(context.Background(), ids[25:30]) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row...)
	}
	for _, id := range ids[30:] {
		row, err := s.Forward(context.Background(), []token.ID{id})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row...)
	}
	return all
}

// TestShrinkGeneration: a generation goes on to the same text, and the reason is one line.
func TestShrinkGeneration(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	texts := map[bool]string{}
	for _, taken := range []bool{false, true} {
		var step atomic.Int64
		m := load(t, path, engine.WithHeadroom(setup(engine.Options{ContextLength: 128}), func() int64 {
			if taken && step.Add(1) == 7 {
				return -1 << 20
			}
			return 1 << 30
		}, 256<<10))
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for tok, err := range s.Generate(t.Context(), m.Encode("Once upon a time", true), engine.Params{MaxTokens: 24, IgnoreEOG: true}) {
			if err != nil {
				t.Fatal(err)
			}
			texts[taken] += tok.Text
		}
		if n := len(m.Stats().Shrinks); (n == 1) != taken {
			t.Errorf("taken %t: %d shrinks", taken, n)
		} else if taken && !strings.HasPrefix(fmt.Sprint(m.Stats().Shrinks[0]), "another program takes VRAM: ") {
			t.Errorf("it reads %q", m.Stats().Shrinks[0])
		}
	}
	if texts[true] != texts[false] || texts[true] == "" {
		t.Errorf("with a shrink %q, without %q", texts[true], texts[false])
	}
}
