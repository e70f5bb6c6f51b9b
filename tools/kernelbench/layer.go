package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// cache is a KV cache of as many positions as all rows attend to, of every sequence the same. There are several, so that a
// dispatch doesn't find in the device's own cache what the last one has read.
type cache struct {
	pages, pos, seq uint64
	seen            uint64 // the first and the last position that a row attends to: all
	run             uint64 // as seen, but the last positions ascend, for rows of one sequence
	rows            int    // that pos, seq, seen and run have
	maxPages        uint32 // of one of them
	positions       int
	count           int
}

// of is the cache of a turn.
func (c cache) of(turn int) cache {
	c.pages += 8 * uint64(turn%c.count) * uint64(c.maxPages)
	return c
}

const (
	page     = 32      // positions
	headSize = 128     // of a layer
	keyHeads = 8       // of a layer, if it has as many
	pageRoom = 1 << 17 // bytes of a page: room for the heads of any layer in halves
	mostRows = 8
)

// openCache makes the caches: random, as the weights are, and together as large, but no fewer than one.
func (d *device) openCache(ctx context.Context, o *options) (err error) {
	n := ((o.positions+page-1)/page + 1) &^ 1 // pages; a table begins on 16 bytes
	count := int(max(1, o.memory/(int64(n)*pageRoom)))
	rows := max(mostRows, slices.Max(o.n))
	part := (8*int64(rows) + 255) &^ 255 // bytes of each, ahead of the page table: positions, sequences, what rows see, what rows of a run see
	table := 4 * part
	head := table + 8*int64(n*count)
	head = (head + 255) &^ 255
	if d.pages, err = d.dev.NewBuffer("KV cache", head+int64(n*count)*pageRoom, vk.DeviceLocal); err != nil {
		return err
	}
	up, err := d.dev.NewBuffer("page table", head, vk.Upload)
	if err != nil {
		return err
	}
	defer up.Close()
	m := up.Mapped()
	for i := range rows {
		binary.LittleEndian.PutUint32(m[4*i:], uint32(o.positions-1))
		binary.LittleEndian.PutUint32(m[part+4*int64(i):], 0)
		binary.LittleEndian.PutUint64(m[2*part+8*int64(i):], uint64(o.positions-1)<<32)
		binary.LittleEndian.PutUint64(m[3*part+8*int64(i):], uint64(max(0, o.positions-rows+i))<<32)
	}
	for i := range n * count {
		binary.LittleEndian.PutUint64(m[table+8*int64(i):], d.pages.Address+uint64(head)+uint64(i)*pageRoom)
	}
	at := d.pages.Address
	d.cache = cache{pages: at + uint64(table), pos: at, seq: at + uint64(part), seen: at + 2*uint64(part), run: at + 3*uint64(part), rows: rows, maxPages: uint32(n), positions: o.positions, count: count}
	_, err = d.submit(ctx, func(r *kernels.Recorder) error {
		if err := r.Copy(d.pages, 0, up, 0, head); err != nil {
			return err
		}
		for off := head; off < d.pages.Bytes; off += pattern {
			if err := r.Copy(d.pages, off, d.weights, 0, min(pattern, d.pages.Bytes-off, d.weights.Bytes)); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// sharedHeads is how many key heads there are for so many of queries.
func sharedHeads(heads int) int { return max(1, heads/4) }

// attendRun is attend of rows of one sequence, the last of which attends to all positions.
func attendRun(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	if n > m.cache.positions {
		return unfitError(fmt.Sprintf("%d rows, want -positions to be more", n))
	}
	r.Rows.Run, m.cache.seen = true, m.cache.run+8*uint64(m.cache.rows-n)
	return attend(r, t, s, n, m)
}

// attendFlops counts both products, for a row with the positions up to its own.
func attendFlops(s shape, n, positions int) float64 {
	seen := float64(n)*float64(positions) - float64(n)*float64(n-1)/2
	return 4 * float64(s.m) * float64(s.k) * seen
}

// attend is the attention of heads of one size, 4 to a key head, over a cache of type t.
func attend(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	kv := sharedHeads(s.m)
	if s.m%kv != 0 || attendCache(t, s, page) > pageRoom {
		return unfitError(fmt.Sprintf("%d heads of %d, want fewer", s.m, s.k))
	}
	if err := shaders.CheckKV(t, s.k, s.k); err != nil {
		return unfitError(err.Error())
	}
	r.Rows.Positions = uint32(m.cache.positions)
	return kernels.FlashAttn(r, t, shaders.FlashAttnArgs{Q: m.x, Dst: m.dst, Pages: m.cache.pages, Seen: m.cache.seen, Seq: m.cache.seq,
		Rows: uint32(n), Heads: uint32(s.m), HeadsKV: uint32(kv), KeyLen: uint32(s.k), ValLen: uint32(s.k), MaxPages: m.cache.maxPages, PagePositions: page,
		QStride: uint32(s.m * s.k), DstStride: uint32(s.m * s.k), Scale: 0.1})
}

// attendBytes counts the activations.
func attendBytes(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.m) * int64(s.k) * 8 }

// attendCache is what so many positions take in a cache of type t.
func attendCache(t gguf.Type, s shape, positions int) int64 {
	return int64(sharedHeads(s.m)) * int64(positions) * 2 * shaders.KVRowBytes(t, s.k)
}

// layerCache is what a layer reads of its own.
func layerCache(_ gguf.Type, s shape, positions int) int64 {
	kv := min(keyHeads, max(1, s.m/headSize))
	return int64(kv) * int64(positions) * 2 * shaders.KVRowBytes(gguf.F16, headSize)
}

// layerMatrices are the matrices of a layer of width s.m and inner width s.k: query, key, value, output, gate, up, down.
func layerMatrices(s shape) [7]shape {
	heads := s.m / headSize
	kv := min(keyHeads, max(1, heads)) * headSize
	return [7]shape{{s.m, s.m}, {kv, s.m}, {kv, s.m}, {s.m, s.m}, {s.k, s.m}, {s.k, s.m}, {s.m, s.k}}
}

func layerBytes(t gguf.Type, s shape, n int) (sum int64) {
	for _, m := range layerMatrices(s) {
		sum += (weightBytes(t, m, n) + 255) &^ 255
	}
	return sum + 2*4*int64(s.m)
}

// together records products that a step of few rows computes as one.
func together(r *kernels.Recorder, p *kernels.Products) error {
	done, err := kernels.Multiply(r, p)
	if err == nil && !done {
		err = unfitError("a layer wants a type that has kernels for several matrices at once")
	}
	return err
}

// layer is all that a step of n rows does in a layer, as the engine records it.
func layer(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	if s.m%headSize != 0 || s.m/headSize%min(keyHeads, s.m/headSize) != 0 || n > mostRows {
		return unfitError(fmt.Sprintf("a layer of width %d and %d rows, want heads of %d and at most %d rows", s.m, n, headSize, mostRows))
	}
	var w [7]uint64
	norm, at := m.w, m.w+2*4*uint64(s.m)
	for i, sh := range layerMatrices(s) {
		w[i] = at
		at += uint64(weightBytes(t, sh, n)+255) &^ 255
	}
	const room = 1 << 20 // bytes of an activation
	x, normed, q, k, v, att, gate := m.x, m.x+room, m.x+2*room, m.x+3*room, m.x+4*room, m.x+5*room, m.x+6*room
	heads, rows, d, f := uint32(s.m/headSize), uint32(n), uint32(s.m), uint32(s.k)
	kv := min(keyHeads, heads)
	product := func(x uint64, cols uint32, of ...kernels.Matrix) *kernels.Products {
		p := &kernels.Products{Type: t, X: x, N: rows, K: cols, XStride: cols, DstStride: of[0].M}
		copy(p.Of[:], of)
		return p
	}
	rms := func(w uint64) error {
		return kernels.NormRows(r, kernels.Norm{Multiplied: true, RMSNormArgs: shaders.RMSNormArgs{X: x, W: w, Dst: normed, Rows: rows, Cols: d, XStride: d, DstStride: d, Eps: 1e-5}})
	}
	residual := func(p *kernels.Products) *kernels.Products {
		p.Residual, p.ResidualStride = x, d
		return p
	}
	r.Rows.Positions = uint32(m.cache.positions)
	gated := product(normed, d, kernels.Matrix{W: w[4], Dst: gate, M: f}, kernels.Matrix{W: w[5], Dst: gate + 2*room, M: f})
	gated.GLU = true
	ahead := func(i int) error { // reads of the matrix that comes next, beside an op that leaves the memory idle
		sh := layerMatrices(s)[i]
		bytes := min(m.ahead, weightBytes(t, sh, n))
		return kernels.Checksum(r, shaders.ChecksumArgs{Src: w[i], Dst: m.more, Count: uint32(bytes / 16)})
	}
	for _, op := range []func() error{
		func() error { return rms(norm) },
		func() error { return ahead(0) },
		func() error {
			p := product(normed, d, kernels.Matrix{W: w[0], Dst: q, M: d}, kernels.Matrix{W: w[1], Dst: k, M: kv * headSize}, kernels.Matrix{W: w[2], Dst: v, M: kv * headSize})
			rope := shaders.RopeKVArgs{Q: q, K: k, V: v, CosSin: m.s, Pages: m.cache.pages, Pos: m.cache.pos, Seq: m.cache.seq,
				Rows: rows, Heads: heads, HeadsKV: kv, KeyLen: headSize, ValLen: headSize, RopeDim: headSize, MaxPages: m.cache.maxPages, PagePositions: page,
				QStride: d, KStride: kv * headSize, VStride: kv * headSize}
			if !m.apart {
				if done, err := kernels.MultiplyRoped(r, &kernels.RopedProducts{Products: *p, KV: gguf.F16, Rope: rope}); done || err != nil {
					return err
				}
			}
			if err := together(r, p); err != nil {
				return err
			}
			return kernels.RopeKV(r, gguf.F16, rope)
		},
		func() error { return ahead(3) },
		func() error {
			return kernels.FlashAttn(r, gguf.F16, shaders.FlashAttnArgs{Q: q, Dst: att, Pages: m.cache.pages, Seen: m.cache.seen, Seq: m.cache.seq,
				Rows: rows, Heads: heads, HeadsKV: kv, KeyLen: headSize, ValLen: headSize, MaxPages: m.cache.maxPages, PagePositions: page,
				QStride: d, DstStride: d, Scale: 0.1})
		},
		func() error {
			return together(r, residual(product(att, d, kernels.Matrix{W: w[3], Dst: x, M: d})))
		},
		func() error { return rms(norm + 4*uint64(d)) },
		func() error { return ahead(4) },
		func() error { return together(r, gated) },
		func() error {
			return together(r, residual(product(gate, f, kernels.Matrix{W: w[6], Dst: x, M: d})))
		},
	} {
		if err := op(); err != nil {
			return err
		}
	}
	return nil
}
