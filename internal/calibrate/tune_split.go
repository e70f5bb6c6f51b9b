package calibrate

import (
	"context"
	"fmt"

	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

// Rows that splits of mul_mat_cm are measured with, and of the matrix at most.
const (
	halfRows, manyRows = 64, 512
	splitMatrix        = 8192  // rows
	splitLength        = width // values of a row
)

// splits are the candidates; those that a device has not the lanes for fall out.
var splits = []kernels.CMTile{
	{BM: 128, BN: 128, WM: 64, WN: 64}, {BM: 128, BN: 128, WM: 32, WN: 64}, {BM: 128, BN: 128, WM: 64, WN: 32},
	{BM: 128, BN: 64, WM: 64, WN: 32}, {BM: 128, BN: 64, WM: 64, WN: 64}, {BM: 128, BN: 64, WM: 32, WN: 32}, {BM: 128, BN: 64, WM: 32, WN: 64},
	{BM: 64, BN: 128, WM: 32, WN: 64}, {BM: 64, BN: 128, WM: 64, WN: 32}, {BM: 64, BN: 64, WM: 32, WN: 32},
}

// split tunes how cooperative matrices share the outputs of up to half a tile's rows of X, or of more: their bits stay.
func (t *tuner) split(ctx context.Context, half bool, p Product) error {
	p.M, p.K, p.Gated = [3]uint32{min(p.M[0], splitMatrix)}, min(p.K, splitLength), false
	n, rows := uint32(manyRows), "many rows"
	if half {
		n, rows = halfRows, fmt.Sprintf("up to %d rows", halfRows)
	}
	row, err := shaders.Find("mul_mat", shaders.CM)
	if err != nil {
		return err
	}
	measure := func(s kernels.CMTile) (float64, error) {
		return t.seconds(ctx, choice{split: &kernels.TunedCMTile{HalfTile: half, CMTile: s}}, []Product{p}, n)
	}
	own := kernels.OwnCMTile(n)
	best, least := own, 0.0
	for _, s := range splits {
		if s != own && (t.fails(s) || selftest.Prove(t.kernels, kernels.Variant{Row: row, CMTile: s}) != nil) {
			continue
		}
		took, err := measure(s)
		if err != nil {
			return err
		}
		if took > 0 && (least == 0 || took < least) {
			best, least = s, took
		}
	}
	was, is, err := compare(func() (float64, error) { return measure(own) }, func() (float64, error) { return measure(best) })
	if err != nil {
		return err
	}
	g := Gain{What: "products by cooperative matrices, " + rows, Own: splitText(own), OwnSeconds: was, BestSeconds: was}
	if best != own && was > leastGain*is {
		g.Best, g.BestSeconds = splitText(best), is
		t.tuned.CMTiles = append(t.tuned.CMTiles, kernels.TunedCMTile{HalfTile: half, CMTile: best, Measured: t.now, Gain: was / is})
	}
	t.gains = append(t.gains, g)
	return nil
}

// fails reports whether the device can't have a split.
func (t *tuner) fails(s kernels.CMTile) bool {
	defer t.kernels.Use(nil)
	return t.kernels.Use(&kernels.Tuned{Kernels: t.tuned.Kernels, CMTiles: []kernels.TunedCMTile{{CMTile: s}}}) != nil
}

func splitText(s kernels.CMTile) string {
	return fmt.Sprintf("%d x %d of %d x %d", s.WM, s.WN, s.BM, s.BN)
}
