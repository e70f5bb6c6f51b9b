package predict

import (
	"path/filepath"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/testdata"
)

func TestPositionsSeen(t *testing.T) {
	for _, c := range []struct {
		mask      arch.Mask
		rows, ctx int
		want      float64
	}{
		{arch.Mask{}, 1, 10, 10},
		{arch.Mask{}, 3, 10, 8 + 9 + 10},
		{arch.Mask{Window: 4}, 6, 6, 1 + 2 + 3 + 4 + 4 + 4},
		{arch.Mask{Window: 4}, 2, 100, 8},
		{arch.Mask{Chunk: 4}, 6, 10, 1 + 2 + 3 + 4 + 1 + 2},
		{arch.Mask{Around: 2}, 5, 5, 3 + 4 + 5 + 4 + 3},
		{arch.Mask{All: true}, 5, 5, 25},
	} {
		if got := positionsSeen(&c.mask, c.rows, c.ctx); got != c.want {
			t.Errorf("%+v: %d rows up to position %d see %g positions, wanted %g", c.mask, c.rows, c.ctx-1, got, c.want)
		}
	}
}

// A step reads what a layer's rows see of the KV cache, and reads and writes a layer's state once, however long the context is.
func TestLongContext(t *testing.T) {
	const short, long, rate = 64, 4096, 1e9
	for name, c := range map[string]struct{ everywhere, windowed int }{ // layers whose time grows with the context, and those with a window
		"gpt-oss-nano": {1, 1}, "qwen3next-nano": {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := pack.Open(filepath.Join(testdata.Root(t), "engine", "testdata", name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			h, err := arch.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 1 << 30, ContextLength: long, KVType: gguf.F16, Chunk: 16})
			if err != nil {
				t.Fatal(err)
			}
			model := newCostModel(p, Speeds{Kernels: KernelSpeeds{BytesPerSec: rate}}, h)
			grow, windowed := 0, 0
			for i := range model.loads {
				l := &model.loads[i]
				if p.Units[i].Kind != pack.Layer {
					continue
				}
				if l.attention == l.state {
					t.Errorf("layer %d: attention %v, state %v, wanted one of them", p.Units[i].Layer, l.attention, l.state)
				}
				more := model.kernelSeconds(i, 1, 1, long) - model.kernelSeconds(i, 1, 1, short)
				at := &p.KV.Layers[p.Units[i].Layer]
				cache := float64(long-short) * float64(h.Layers[p.Units[i].Layer].HeadCountKV) * float64(at.RowBytes) / rate
				switch {
				case l.state:
					var bytes int64
					for _, part := range h.StateParts(p.Units[i].Layer) {
						bytes += 4 * int64(part.Rows) * int64(part.Cols)
					}
					if got, want := model.stateSeconds(i, 1), float64(2*bytes)/rate; got != want || want == 0 || more != 0 {
						t.Errorf("layer %d: the state takes %g s, wanted %g; a longer context %g s more, wanted none", p.Units[i].Layer, got, want, more)
					}
				case h.Masks[h.Layers[p.Units[i].Layer].Mask].Window > 0:
					if windowed++; more != 0 {
						t.Errorf("layer %d has a window: a longer context takes %g s more, wanted none", p.Units[i].Layer, more)
					}
				default:
					if grow++; more < 0.99*cache || more > 1.01*cache {
						t.Errorf("layer %d: a longer context takes %g s more, wanted %g", p.Units[i].Layer, more, cache)
					}
				}
			}
			if grow < c.everywhere || windowed < c.windowed {
				t.Errorf("%d layers see all positions and %d have a window, wanted %d and %d at least", grow, windowed, c.everywhere, c.windowed)
			}
		})
	}
}
