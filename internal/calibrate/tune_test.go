package calibrate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

// The products of a model are all its matrices, each once.
func TestProductsOf(t *testing.T) {
	m, err := pack.Open(testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	var want, got int64
	for i := range m.Units {
		for _, w := range m.Units[i].Tensors {
			if len(w.Shape) == 2 && (m.Units[i].Kind != pack.Embed || h.Tied) {
				want += w.Shape[0] * w.Shape[1]
			}
		}
	}
	gated := 0
	for _, p := range ProductsOf(h, m) {
		got += int64(p.M[0]+p.M[1]+p.M[2]) * int64(p.K) * int64(p.Count)
		if p.Gated {
			gated += p.Count
		}
	}
	if got != want || gated != h.BlockCount {
		t.Errorf("products of %d weights, %d gated; want %d and %d", got, gated, want, h.BlockCount)
	}
}

// The search goes on from what is best so far, and ends at a choice that no single constant makes faster.
func TestSearch(t *testing.T) {
	ideal := kernels.Tile{Rows: 4, Team: 16, Unroll: 2, Lanes: 128}
	cost := func(tile kernels.Tile) (float64, error) {
		if tile.Rows == 8 {
			return 0, nil // out of range: never the best
		}
		off := func(a, b uint32) float64 { return max(float64(a)/float64(b), float64(b)/float64(a)) }
		return off(tile.Rows, ideal.Rows) * off(tile.Team, ideal.Team) * off(tile.Unroll, ideal.Unroll) * off(tile.Lanes, ideal.Lanes), nil
	}
	got, err := search(kernels.Tile{Rows: 1, Team: 64, Unroll: 1, Lanes: 64}, cost)
	if err != nil || got != ideal {
		t.Errorf("found %+v, %v; want %+v", got, err, ideal)
	}
	failed := errors.New("no")
	if _, err := search(ideal, func(kernels.Tile) (float64, error) { return 0, failed }); err != failed {
		t.Errorf("the error is %v", err)
	}
}

// What is tuned here can be used, and says by how much.
func TestTune(t *testing.T) {
	dev := vktest.Open(t)
	products := []Product{{Type: gguf.F16, M: [3]uint32{256, 64}, K: 256, Count: 2}, {Type: gguf.F16, M: [3]uint32{64, 64}, K: 128, Gated: true, Count: 1}}
	var steps []int
	tuned, gains, err := Tune(t.Context(), dev, products, slog.New(slog.DiscardHandler), func(done, total int) { steps = append(steps, done, total) })
	if err != nil {
		t.Fatal(err)
	}
	few, matrices := kernels.HasFewRowKernels(dev.Physical, dev.Features), kernels.PromptsUseMatrices(dev.Physical, dev.Features)
	want := 2 + 1
	if matrices {
		want++
	}
	if few && len(gains) != want {
		t.Errorf("%d choices were tuned, want %d: %+v", len(gains), want, gains)
	}
	won := 0
	for _, g := range gains {
		if g.Best != "" {
			won++
		}
		if g.What == "" || g.Own == "" || !(g.OwnSeconds > 0) || !(g.BestSeconds > 0) || g.BestSeconds > g.OwnSeconds {
			t.Errorf("%+v", g)
		}
	}
	if n := tuned.Len(); n != won {
		t.Errorf("%d are to be kept, %d are faster", n, won)
	}
	if !slices.IsSorted(every(steps, 0)) || steps[len(steps)-1] != steps[len(steps)-2] {
		t.Errorf("progress %v", steps)
	}
	k, err := kernels.New(dev, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := k.Use(tuned); err != nil {
		t.Error(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Tune(canceled, dev, products, slog.New(slog.DiscardHandler), func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func every(list []int, from int) (half []int) {
	for i := from; i < len(list); i += 2 {
		half = append(half, list[i])
	}
	return half
}
