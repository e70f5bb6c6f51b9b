package calibrate

import (
	"context"
	"errors"
	"time"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// takes reports whether the kernels for few rows can compute a product.
func (t *tuner) takes(p Product) bool {
	r := t.decoder(nil)
	x := t.products(p, 1, 0)
	v := kernels.ProductVariant(r, &x)
	return v != "" && v != shaders.FP32
}

// seconds is what products take with a choice, n rows of X, each as often as a step makes it; 0 where it can't be used.
func (t *tuner) seconds(ctx context.Context, c choice, kind []Product, n uint32) (sum float64, err error) {
	use := &kernels.Tuned{Kernels: t.tuned.Kernels}
	switch {
	case c.product != nil:
		use.Products = []kernels.TunedProduct{*c.product}
	case c.outputs != nil:
		use.Outputs = []kernels.TunedOutputs{*c.outputs}
	case c.split != nil:
		use.CMTiles = []kernels.TunedCMTile{*c.split}
	}
	if t.kernels.Use(use) != nil {
		return 0, nil // out of range: not a candidate
	}
	defer t.kernels.Use(nil)
	if err := t.warm(ctx); err != nil {
		return 0, err
	}
	for _, p := range kind {
		took, err := t.quick(ctx, func(r *kernels.Recorder, turn int) error { return t.multiply(r, p, n, turn) })
		var wrong *kernels.ArgError
		if errors.As(err, &wrong) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		sum += took.Seconds() * float64(p.Count)
	}
	return sum, nil
}

// quick is the least time of one of what record records, from a few short submissions.
func (t *tuner) quick(ctx context.Context, record func(r *kernels.Recorder, turn int) error) (best time.Duration, err error) {
	times, turn := 1, 0
	for i := range quickTimes {
		took, err := t.run.submit(ctx, func(cb *vk.CommandBuffer) error {
			r := t.decoder(cb)
			for range times {
				if err := record(r, turn); err != nil {
					return err
				}
				turn++
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		one := max(1, took/time.Duration(times))
		if best == 0 || one < best {
			best = one
		}
		if i == 1 && took > 4*quickTime {
			break // a slow device's clock is exact enough
		}
		times = int(min(max(1, quickTime/one), 256))
	}
	return best, nil
}

// splitScratch is the memory of products of many rows, before a recorder's own.
const splitScratch = 16 << 20

// multiply records one product.
func (t *tuner) multiply(r *kernels.Recorder, p Product, n uint32, turn int) (err error) {
	if n > shaders.FewRows {
		r.Rows.Role = kernels.Prompt
		end := t.weights.Address + uint64(t.weights.Bytes) - decoderBytes
		r.Memory.Tiles = kernels.Scratch{Address: end - splitScratch, Bytes: splitScratch}
	}
	x := t.products(p, n, turn)
	if done, err := kernels.Multiply(r, &x); done || err != nil {
		return errors.Join(err, r.Finish())
	}
	defer func() { err = errors.Join(err, r.Finish()) }()
	for _, m := range x.Of {
		err := kernels.MulMat(r, p.Type, shaders.MulMatArgs{W: m.W, X: x.X, Dst: m.Dst, M: m.M, K: p.K, N: n, XStride: p.K, DstStride: max(m.M, 1)})
		if err != nil {
			return err
		}
	}
	return nil
}

// products places a product's weights somewhere else at each turn, so that no cache holds them, and its vectors behind all weights.
func (t *tuner) products(p Product, n uint32, turn int) kernels.Products {
	row, _ := p.Type.RowBytes(int64(p.K)) // of a tensor that is there
	x := t.weights.Address + uint64(t.total)
	to := x + maxCols*width*4
	all := kernels.Products{Type: p.Type, X: x, N: n, K: p.K, XStride: p.K, GLU: p.Gated}
	m := t.fitting(p, row)
	var bytes uint64
	for _, rows := range m {
		bytes += (uint64(rows)*uint64(row) + 255) &^ 255
	}
	at := t.weights.Address
	if turns := uint64(t.total) / max(bytes, 1); turns > 0 {
		at += uint64(turn) % turns * bytes
	}
	for i, rows := range m {
		if rows == 0 {
			continue
		}
		all.Of[i] = kernels.Matrix{W: at, Dst: to, M: rows}
		at += (uint64(rows)*uint64(row) + 255) &^ 255
		to += (4*uint64(rows)*uint64(n) + 255) &^ 255
	}
	all.DstStride = m[0]
	return all
}

// fitting are the rows of a product, or as many as there is memory for.
func (t *tuner) fitting(p Product, row int64) [3]uint32 {
	m := p.M
	for {
		var sum int64
		for _, rows := range m {
			sum += int64(rows)*row + 256
		}
		if sum <= t.total || m[0] < 64 {
			return m
		}
		for i := range m {
			m[i] = m[i] / 2 &^ 31
		}
	}
}
