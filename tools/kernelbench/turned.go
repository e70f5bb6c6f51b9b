package main

import (
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
)

// turned is the product of queries and keys, or of values, or of all, that turns them and leaves keys and values in the cache. The weights' rows are
// heads of 128 of all that there are, with as many key heads as a layer has at most.
func turned(keys, values bool) func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	return func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
		all, kv := s.m/headSize, keyHeads
		queries := func() int {
			q := all
			if keys && values {
				q -= kv
			}
			return q - kv
		}
		for kv > 0 && (queries() < 0 || queries()%kv != 0 || !keys && kv != all) {
			kv--
		}
		if kv == 0 || s.m%headSize != 0 || n > mostRows {
			return unfitError(fmt.Sprintf("%d rows of weights and %d of X, want whole heads of %d, at most %d of values, and %d rows", s.m, n, headSize, keyHeads, mostRows))
		}
		row := weightBytes(t, shape{1, s.k}, n)
		a := shaders.MulMatRopeArgs{X: m.x, S: m.s, Dst: m.dst, CosSin: m.more, Pages: m.cache.pages, Pos: m.cache.pos, Seq: m.cache.seq,
			K: uint32(s.k), N: uint32(n), Heads: uint32(queries() | kv<<16), MaxPages: m.cache.maxPages, PagePositions: page}
		at := m.w
		next := func(heads int) uint64 {
			w := at &^ 15
			at += uint64(heads) * headSize * uint64(row)
			return w
		}
		if keys {
			a.W0, a.W1 = next(queries()), next(kv)
		}
		if values {
			a.W2 = next(kv)
		}
		return kernels.MulMatRope(r, t, kernels.RopeConstants{KeyLen: headSize, ValLen: headSize, RopeDim: headSize}, a)
	}
}
