package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"leat/engine"
)

// TestAsked demands the same logits, to the bit, of rows whatever others of their step ask: the last layer computes those that
// do alone, few of them, or none. The step is of two sessions whose rows alternate, and both go on behind it.
func TestAsked(t *testing.T) {
	const rows = 22
	last := slices.Repeat([]bool{false}, rows)
	last[rows-1] = true
	some, many, none := slices.Clone(last), slices.Clone(last), make([]bool, rows)
	for i := range rows {
		some[i] = some[i] || i%5 == 1
		many[i] = i%2 == 0
	}
	for _, g := range goldens(t) {
		switch {
		case strings.HasSuffix(g.name, "-nano"):
		case g.name == "qwen3moe-tiny-q4_k_m", g.name == "qwen2-tiny-q8_0":
		default:
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			base := exact(engine.Options{KVType: "f32", ContextLength: 128, Chunk: rows, Sessions: 2, Discrete: true})
			whole := load(t, g.model, engine.WithEveryRow(base))
			want := alternate(t, whole, g, slices.Repeat([]bool{true}, rows))
			small := base
			small.DeviceBytes, small.HostBytes = leastBudget(t, g.model, base), 1<<30
			disk := small
			disk.HostBytes = 1
			short := base
			short.MaxSubmit = 1 // every product is split by rows
			for name, o := range map[string]engine.Options{"all in VRAM": base, "least VRAM": small, "from disk": disk, "shortest submissions": short} {
				m := load(t, g.model, o)
				vocab := m.Hyper().VocabSize
				for i, asks := range [][]bool{last, some, many, none} {
					got := alternate(t, m, g, asks)
					at := 0
					for n, asked := range append(slices.Clone(asks), true, true) { // two more rows behind them
						if !asked {
							continue
						}
						sameBits(t, fmt.Sprintf("%s, case %d, row %d", name, i+1, n), got[at:][:vocab], want[n*vocab:][:vocab])
						at += vocab
					}
					if len(got) != at {
						t.Errorf("%s, case %d: %d logits, wanted %d", name, i+1, len(got), at)
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
