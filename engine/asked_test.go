package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/engine/token"
)

// TestAsked demands the same logits, to the bit, of rows whatever others of their step ask: the last layer computes those that
// do alone, few of them, or none. The step is of two sessions whose rows alternate, and both go on behind it.
func TestAsked(t *testing.T) {
	const rows = 22
	only := func(rows int, asks func(i int) bool) (list []bool) {
		for i := range rows {
			list = append(list, asks(i))
		}
		return list
	}
	last, none := func(i int) bool { return i == rows-1 }, func(int) bool { return false }
	cases := [][]bool{
		only(rows, last), only(rows, func(i int) bool { return last(i) || i%5 == 1 }), only(rows, func(i int) bool { return i%2 == 0 }), only(rows, none),
		only(7, func(i int) bool { return i > 4 }), only(7, none),
	}
	for _, g := range goldensInTurn(t, func(g golden) bool {
		return strings.HasSuffix(g.name, "-nano") || g.name == "qwen3moe-tiny-q4_k_m" || g.name == "qwen2-tiny-q8_0"
	}) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			base := exact(setup(engine.Options{KVType: "f32", ContextLength: 128, Sessions: 2, Tuning: engine.Tuning{Chunk: rows, Discrete: true}}))
			whole := load(t, g.model, engine.WithEveryRow(base))
			want := map[int][]float32{}
			for _, n := range []int{rows, 7} {
				want[n] = alternate(t, whole, g, slices.Repeat([]bool{true}, n))
			}
			small := base
			small.DeviceBytes, small.HostBytes = leastBudget(t, g.model, base), 1<<30
			disk := small
			disk.HostBytes = 1
			short := base
			short.Tuning.MaxSubmit = 1 // every product is split by rows
			for n, c := range []struct {
				name string
				o    engine.Setup
			}{{"all in VRAM", base}, {"least VRAM", small}, {"from disk", disk}, {"shortest submissions", short}} {
				if !g.takes(n) {
					continue
				}
				m := load(t, g.model, c.o)
				vocab := engine.DetailsOf(m).Hyper.VocabSize
				for i, asks := range cases {
					got := alternate(t, m, g, asks)
					at := 0
					for n, asked := range append(slices.Clone(asks), true, true) { // two more rows behind them
						if !asked {
							continue
						}
						sameBits(t, fmt.Sprintf("%s, case %d, row %d", c.name, i+1, n), got[at:][:vocab], want[len(asks)][n*vocab:][:vocab])
						at += vocab
					}
					if len(got) != at {
						t.Errorf("%s, case %d: %d logits, wanted %d", c.name, i+1, len(got), at)
					}
				}
			}
		})
	}
}

// alternate runs a step of rows of two sessions, of which those that say so ask for logits, then one of a row of each.
func alternate(t *testing.T, m *engine.Model, g golden, asks []bool) []float32 {
	t.Helper()
	ref := readReference(t, g.base)
	ids := slices.Concat(ref.Tokens, ref.Greedy)
	var rows []engine.Asking
	var both [2]*engine.Session
	for i := range both {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		both[i] = s
	}
	for i, asked := range asks {
		rows = append(rows, engine.Asking{Session: both[i%2], Token: ids[i+i%2], Logits: asked})
	}
	got, err := m.Step(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	n := len(asks)
	more, err := m.Step(context.Background(), []engine.Asking{{Session: both[0], Token: ids[n], Logits: true}, {Session: both[1], Token: ids[n+2], Logits: true}})
	if err != nil {
		t.Fatal(err)
	}
	return append(got, more...)
}

// TestRoles demands of the kernels that a device has for speed the same logits, to the bit, of a row in a step of its own and in a step of four
// sessions, two with a prompt and two with a token to decode; and of a prompt's last row and of the same row where all ask.
func TestRoles(t *testing.T) {
	for _, g := range goldensInTurn(t, func(g golden) bool {
		return strings.HasSuffix(g.name, "-nano") || slices.Contains([]string{"leat-demo-q4_k_m", "leat-demo-moe-q4_k_m", "llama-tiny-q6_k", "qwen2-tiny-q8_0", "llama-tiny-bf16"}, g.name)
	}) {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			ref := readReference(t, g.base)
			ids := slices.Concat(ref.Tokens, ref.Greedy)
			m := load(t, g.model, setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 32}, Sessions: 4}))
			open := func() *engine.Session {
				s, err := m.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				return s
			}
			forward := func(s *engine.Session, ids []token.ID) []float32 {
				row, err := s.Forward(t.Context(), ids)
				if err != nil {
					t.Fatal(err)
				}
				return slices.Clone(row)
			}
			// Each session has read before some ids, and reads more in the step.
			parts := []struct {
				before, in int
				prompt     bool
			}{{0, 11, true}, {7, 1, false}, {2, 3, true}, {13, 1, false}}
			var want []float32
			vocab := engine.DetailsOf(m).Hyper.VocabSize
			if g.takes(11) {
				all := open()
				for row, err := range all.Logits(t.Context(), ids[:11]) {
					if err != nil {
						t.Fatal(err)
					}
					want = append(want[:0], row...)
				}
				all.Close()
				s := open()
				sameBits(t, "the last row of a prompt of which all ask", forward(s, ids[:11]), want)
				s.Close()
			}
			want = want[:0]
			for _, p := range parts {
				s := open()
				if p.before > 0 {
					forward(s, ids[:p.before])
				}
				want = append(want, forward(s, ids[p.before:][:p.in])...)
				s.Close()
			}
			var rows []engine.Asking
			for _, p := range parts {
				s := open()
				if p.before > 0 {
					forward(s, ids[:p.before])
				}
				for i, id := range ids[p.before:][:p.in] {
					rows = append(rows, engine.Asking{Session: s, Token: id, Prompt: p.prompt, Logits: i == p.in-1})
				}
			}
			got, err := m.Step(t.Context(), rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range parts {
				sameBits(t, fmt.Sprintf("session %d of the step", i+1), got[i*vocab:][:vocab], want[i*vocab:][:vocab])
			}
		})
	}
}
