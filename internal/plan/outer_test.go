package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/synth/synthetic"
)

// Weights outside the layers and the head are resident units of one block if operations read them: the final norm before the head, others before all layers.
func TestOuterUnits(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	bias := pack.Tensor{Name: arch.OutputBias, Type: gguf.F32, Shape: []int64{int64(h.VocabSize)}, Bytes: 4 * int64(h.VocabSize)}
	unused := pack.Tensor{Name: "zero.weight", Type: gguf.F32, Shape: []int64{8}, Bytes: 32, UnitOff: 4096}
	global := pack.Unit{Kind: pack.Global, Layer: -1, Expert: -1, Name: "global", Tensors: []pack.Tensor{bias, unused}, Bytes: 8192}
	for name, c := range map[string]struct {
		units []pack.Unit
		want  []pack.Kind // of the units outside the layers and the head, in order
		bytes int64
	}{
		"a norm":          {m.Units, []pack.Kind{pack.Norm}, 4 * int64(h.EmbeddingLength)},
		"a norm and more": {append(slices.Clone(m.Units), global), []pack.Kind{pack.Global, pack.Norm}, 4 * int64(h.VocabSize+h.EmbeddingLength)},
		"neither":         {slices.DeleteFunc(slices.Clone(m.Units), func(u pack.Unit) bool { return u.Kind == pack.Norm }), nil, 0},
	} {
		v, err := m.View(c.units)
		if err != nil {
			t.Fatal(err)
		}
		p := mustMake(t, h, v, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 64 << 20})
		var kinds []pack.Kind
		block, end := len(p.Blocks)-1, int64(0)
		for i, u := range p.Units {
			if u.Kind != pack.Global && u.Kind != pack.Norm {
				continue
			}
			kinds = append(kinds, u.Kind)
			if !u.Resident() || u.Block != block || u.Off < end || len(u.Tensors) != 1 {
				t.Errorf("%s: unit %d has tier %v, block %d, offset %d and %d tensors", name, i, u.Tier, u.Block, u.Off, len(u.Tensors))
			}
			end = u.Off + u.Bytes
			if first := u.Kind == pack.Global; first != (i == 0) || !first && p.Units[i+1].Kind != pack.Head {
				t.Errorf("%s: %s is unit %d of %d", name, u.Kind, i, len(p.Units))
			}
		}
		if !slices.Equal(kinds, c.want) || end < c.bytes || p.Blocks[block] < end {
			t.Errorf("%s: found units %v up to %d in a block of %d, wanted %v of %d bytes", name, kinds, end, p.Blocks[block], c.want, c.bytes)
		}
	}
}

// A model whose layers have no cache has no pages.
func TestNoPages(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	for l := range h.Layers {
		h.Layers[l].Cache = false
	}
	p := mustMake(t, h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 64 << 20})
	if p.KV.PageBytes != 0 || p.KV.Pages != 0 || len(p.KV.Blocks) != 0 || p.KV.Bytes() != 0 {
		t.Errorf("found %+v", p.KV)
	}
}

// Weights for positions limit the context.
func TestLearnedPositions(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	h.Positions = 600
	for ctx, fits := range map[int]bool{600: true, 601: false} {
		_, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 64 << 20, ContextLength: ctx})
		var long *arch.UnsupportedError
		if fits && err != nil || !fits && !errors.As(err, &long) {
			t.Errorf("context %d: error %v", ctx, err)
		}
	}
}

// Rows whose factor follows from their position have regions for it, others have none.
func TestRowScales(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	for _, scale := range []arch.RowScale{{}, {Factor: 0.1, Length: 8192}} {
		h.RowScale = scale
		p := mustMake(t, h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 64 << 20})
		s, rows, logits := &p.Scratch, 0, 0
		if scale.Factor != 0 {
			rows, logits = 4*p.Chunk, 4*p.LogitRows
		}
		if s.RowScales.Bytes < int64(rows) || s.LogitScales.Bytes < int64(logits) || rows == 0 && s.RowScales.Bytes+s.LogitScales.Bytes > 0 {
			t.Errorf("%+v: regions %+v and %+v, wanted %d and %d bytes", scale, s.RowScales, s.LogitScales, rows, logits)
		}
	}
}

// Attention that leat computes only in contexts without a choice limits the context, also one that nobody has asked for.
func TestIndexedContext(t *testing.T) {
	h, m := open(t, synthetic.Options{Arch: "llama"})
	h.Indexer.Top = 600
	for ctx, want := range map[int]int{0: 600, 600: 600, 601: -1} {
		p, err := plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 64 << 20, ContextLength: ctx})
		var long *arch.UnsupportedError
		if want < 0 && (!errors.As(err, &long) || !strings.Contains(err.Error()+long.Hint(), "601")) || want > 0 && (err != nil || p.ContextLength != want) {
			t.Errorf("context %d: error %v, plan %+v", ctx, err, p)
		}
	}
}
