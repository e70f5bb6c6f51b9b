package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
)

// memory is where an op finds its operands.
type memory struct {
	w         uint64 // weights of this turn
	x, s, dst uint64 // activations, their scales, the output of this turn
	more      uint64 // other outputs
	cache     cache
	experts   *experts
	turn      int
	ahead     int64 // bytes
	apart     bool  // rope, from the product of what it turns
}

// kernelOp is a kernel that can be measured.
type kernelOp struct {
	typed, teams bool
	products     int                                        // with experts, that a row of X takes part in; 0: there are none
	table        func(t gguf.Type) (*shaders.Kernel, error) // nil: exists for all types
	record       func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error
	// bytes that one dispatch reads of the rotating memory; of an op without weights, all that it moves
	bytes func(t gguf.Type, s shape, n int) int64
	// cache is what one dispatch reads of the KV cache beside that, where rows see so many positions; nil: nothing
	cache func(t gguf.Type, s shape, positions int) int64
	// flops of a dispatch of n rows that attend to so many positions; nil: those of a product where it is one
	flops            func(s shape, n, positions int) float64
	splits, matrices bool // it takes splits; the device must multiply cooperative matrices
}

// work is the floating-point operations of a dispatch, 0 where they are not what counts.
func (k kernelOp) work(p point, positions int) float64 {
	switch {
	case k.flops != nil:
		return k.flops(p.shape, p.n, positions)
	case !k.typed || k.cache != nil:
		return 0
	}
	return 2 * float64(p.shape.m) * float64(p.shape.k) * float64(p.n) * float64(max(1, k.products))
}

// reads is all that a dispatch is known to read.
func (k kernelOp) reads(p point, positions int) int64 {
	n := k.bytes(p.typ, p.shape, p.n)
	if k.cache != nil {
		n += k.cache(p.typ, p.shape, positions)
	}
	return n
}

// kernel finds the kernels of an op's variant by their types.
func kernel(op, variant string) func(t gguf.Type) (*shaders.Kernel, error) {
	return func(t gguf.Type) (*shaders.Kernel, error) { return shaders.Find(op, variant, t) }
}

func variant(v string) func(t gguf.Type) (*shaders.Kernel, error) { return kernel("mul_mat_vec", v) }

// teamOp is a mul_mat_vec in teams; change makes of one product what shares its dispatch, given the bytes of a row.
func teamOp(variant string, glu uint32, change func(a *shaders.MulMatTeamArgs, m memory, row int64)) func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	return func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
		a := shaders.MulMatTeamArgs{W0: m.w, X: m.x, S: m.s, Dst0: m.dst, M0: uint32(s.m), K: uint32(s.k), N: uint32(n), XStride: uint32(s.k), DstStride: uint32(s.m)}
		change(&a, m, weightBytes(t, shape{1, s.k}, n))
		return kernels.MulMatTeam(r, variant, t, glu, a)
	}
}

func alone(*shaders.MulMatTeamArgs, memory, int64) {}

// siblings cuts the rows as the heads of queries, keys and values of an 8B model share them: 4 to 1 to 1.
func siblings(a *shaders.MulMatTeamArgs, m memory, row int64) {
	part := a.M0 / 6 &^ 15
	a.M0, a.M1, a.M2 = a.M0-2*part, part, part
	a.W1 = a.W0 + uint64(int64(a.M0)*row)&^15
	a.W2 = a.W1 + uint64(int64(part)*row)
	a.Dst1, a.Dst2, a.DstStride = m.more, m.more+outputStride, a.M0
}

// residual adds the product to what is there.
func residual(a *shaders.MulMatTeamArgs, m memory, row int64) {
	a.Residual, a.ResidualStride = m.dst, a.DstStride
}

// gates makes half of the rows gates and half what they let through, and bytes of the result.
func gates(a *shaders.MulMatTeamArgs, m memory, row int64) {
	a.M0 = a.M0 / 2 &^ 31
	a.M1, a.DstStride = a.M0, a.M0
	a.W1 = a.W0 + uint64(int64(a.M0)*row)
	a.Dst1, a.Dst2 = m.more, m.more+outputStride
}

func mulMatArgs(s shape, n int, m memory) shaders.MulMatArgs {
	return shaders.MulMatArgs{W: m.w, X: m.x, Dst: m.dst, M: uint32(s.m), K: uint32(s.k), N: uint32(n), XStride: uint32(s.k), DstStride: uint32(s.m)}
}

func weightBytes(t gguf.Type, s shape, n int) int64 {
	blocks := (s.k + int(t.BlockSize()) - 1) / int(t.BlockSize()) // a part of one will not be dispatched
	return int64(s.m) * int64(blocks) * int64(t.BlockBytes())
}

// plain is the float32 mul_mat_vec up to 8 rows of X, and beyond mul_mat.
func plain(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	r.Rows.Role, r.Memory.Q8, r.Memory.Tiles = kernels.Prompt, kernels.Scratch{}, kernels.Scratch{}
	return kernels.MulMat(r, t, mulMatArgs(s, n, m))
}

// chosen is what a step's product of so many rows runs on the device, once X is in the form that it takes.
func chosen(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	r.Rows.Role = kernels.Prompt
	if n <= shaders.FewRows {
		r.Rows.Role = kernels.Decode
	}
	return kernels.MulMat(r, t, mulMatArgs(s, n, m))
}

// decoded is chosen with weights that are decoded there.
func decoded(where kernels.Decoding) func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
	return func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
		r.Override.Decoding = where
		return chosen(r, t, s, n, m)
	}
}

// inTiles is the product of what is in tiles on both sides.
func inTiles(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
	return kernels.MulMatTiles(r, shaders.MulMatCMArgs{W: m.w, X: m.x, Scales: m.s, Dst: m.dst, M: uint32(s.m), K: uint32(s.k), N: uint32(n), DstStride: uint32(s.m)})
}

func tilesBytes(_ gguf.Type, s shape, _ int) int64 {
	return shaders.TilesBytes(uint32(s.m), uint32(s.k))
}

// halvesAlone finds a kernel for halves and for no other type.
func halvesAlone(t gguf.Type) (*shaders.Kernel, error) {
	if t != gguf.F16 {
		return nil, unfitError("it takes halves alone")
	}
	return shaders.Find("mul_mat", shaders.CM)
}

func dequant(r *kernels.Recorder, t gguf.Type, s shape, _ int, m memory) error {
	if tilesBytes(t, s, 0) > r.Memory.Tiles.Bytes {
		return unfitError("want -halves to be more")
	}
	return kernels.DequantF16(r, t, shaders.DequantF16Args{W: m.w, Dst: r.Memory.Tiles.Address, M: uint32(s.m), K: uint32(s.k)})
}

var kernelOps = map[string]kernelOp{
	"mul_mat":                      {typed: true, splits: true, record: chosen, bytes: weightBytes},
	"mul_mat_before":               {typed: true, splits: true, matrices: true, record: decoded(kernels.DecodeBefore), bytes: weightBytes},
	"mul_mat_q_cm":                 {typed: true, splits: true, matrices: true, table: kernel("mul_mat", shaders.BlocksCM), record: decoded(kernels.DecodeWithin), bytes: weightBytes},
	"mul_mat_cm":                   {typed: true, splits: true, matrices: true, table: halvesAlone, record: inTiles, bytes: tilesBytes},
	"dequant_f16":                  {typed: true, table: kernel("dequant_f16", shaders.FP32), record: dequant, bytes: weightBytes, flops: func(shape, int, int) float64 { return 0 }},
	"mul_mat_vec":                  {typed: true, record: plain, bytes: weightBytes},
	"mul_mat_vec_int8":             {typed: true, teams: true, table: variant(shaders.Int8), record: teamOp(shaders.Int8, shaders.NoGLU, alone), bytes: weightBytes},
	"mul_mat_vec_int8_siblings":    {typed: true, teams: true, table: variant(shaders.Int8), record: teamOp(shaders.Int8, shaders.NoGLU, siblings), bytes: weightBytes},
	"mul_mat_vec_int8_residual":    {typed: true, teams: true, table: variant(shaders.Int8), record: teamOp(shaders.Int8, shaders.NoGLU, residual), bytes: weightBytes},
	"mul_mat_vec_int8_gates":       {typed: true, teams: true, table: variant(shaders.Int8), record: teamOp(shaders.Int8, shaders.GLUBytes, gates), bytes: weightBytes},
	"mul_mat_vec_straight":         {typed: true, teams: true, table: variant(shaders.Straight), record: teamOp(shaders.Straight, shaders.NoGLU, alone), bytes: weightBytes},
	"mul_mat_vec_persistent":       {typed: true, teams: true, table: variant(shaders.Persistent), record: teamOp(shaders.Persistent, shaders.NoGLU, alone), bytes: weightBytes},
	"mul_mat_vec_persistent_gates": {typed: true, teams: true, table: variant(shaders.Persistent), record: teamOp(shaders.Persistent, shaders.GLUBytes, gates), bytes: weightBytes},
	"mul_mat_vec_longs":            {typed: true, teams: true, table: variant(shaders.Longs), record: teamOp(shaders.Longs, shaders.NoGLU, alone), bytes: weightBytes},
	"mul_mat_vec_rope":             {typed: true, teams: true, table: variant(shaders.Turned), record: turned(true, true), bytes: weightBytes},
	"mul_mat_vec_rope_qk":          {typed: true, teams: true, table: variant(shaders.Turned), record: turned(true, false), bytes: weightBytes},
	"mul_mat_vec_rope_v":           {typed: true, teams: true, table: variant(shaders.Turned), record: turned(false, true), bytes: weightBytes},
	"mul_mat_vec_wide":             {typed: true, teams: true, table: variant(shaders.Wide), record: teamOp(shaders.Wide, shaders.NoGLU, alone), bytes: weightBytes},
	"mul_mat_id":                   {typed: true, teams: true, splits: true, products: usedExperts, record: expertOp(false), bytes: expertBytes(1)},
	"mul_mat_id_gates":             {typed: true, teams: true, splits: true, products: 2 * usedExperts, record: expertOp(true), bytes: expertBytes(2)},
	"layer":                        {typed: true, teams: true, record: layer, bytes: layerBytes, cache: layerCache},
	"flash_attn":                   {typed: true, table: kernel("flash_attn", shaders.FP32), record: attend, bytes: attendBytes, cache: attendCache},
	"flash_attn_cm":                {typed: true, matrices: true, table: kernel("flash_attn", shaders.CM), record: attendRun, bytes: attendBytes, cache: attendCache, flops: attendFlops},
	"argmax": { // of as many columns as the weights have rows
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.Argmax(r, shaders.ArgmaxArgs{X: m.x, Dst: m.dst, Rows: uint32(n), Cols: uint32(s.m)})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.m) * 4 }},
	"topk_moe": { // as many experts as the weights have rows
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.TopKMoE(r, shaders.TopKMoEArgs{X: m.x, IDs: m.more, Weights: m.dst, Rows: uint32(n), Experts: uint32(s.m), Used: usedExperts, Gating: shaders.GateNormalised, Scale: 1})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.m) * 4 }},
	"topk_moe_routed": {typed: true, table: kernel("topk_moe", shaders.Routed), bytes: weightBytes, // behind a norm and the weights, a router's
		record: func(r *kernels.Recorder, t gguf.Type, s shape, n int, m memory) error {
			done, err := kernels.RouteNormed(r, &kernels.RoutedTopK{Router: t, TopKMoERoutedArgs: shaders.TopKMoERoutedArgs{X: m.x, W: m.s, Router: m.w, Dst: m.dst, Scores: m.more, IDs: m.more + outputStride, Weights: m.more + 2*outputStride,
				Rows: uint32(n), Cols: uint32(s.k), Experts: uint32(s.m), Used: usedExperts, Gating: shaders.GateNormalised, Scale: 1, Eps: 1e-5}})
			if err == nil && !done {
				err = unfitError("want a router of floats, and few rows")
			}
			return err
		}},
	"quantize_q8": {
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.QuantizeQ8(r, shaders.QuantizeQ8Args{X: m.x, Q: m.dst, S: m.s, Rows: uint32(n), Cols: uint32(s.k), XStride: uint32(s.k)})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.k) * 21 / 4 }},
	"rms_norm": {
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.RMSNorm(r, shaders.RMSNormArgs{X: m.x, W: m.s, Dst: m.dst, Rows: uint32(n), Cols: uint32(s.k), XStride: uint32(s.k), DstStride: uint32(s.k), Eps: 1e-5})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.k) * 8 }},
	"rms_norm_q8": {
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.RMSNormQ8(r, shaders.RMSNormQ8Args{X: m.x, W: m.s, Dst: m.dst, Q: m.more, S: m.more + outputStride, Rows: uint32(n), Cols: uint32(s.k), XStride: uint32(s.k), DstStride: uint32(s.k), Eps: 1e-5})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.k) * 37 / 4 }},
	"add": {
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.Add(r, shaders.AddArgs{A: m.x, B: m.x, Dst: m.dst, Count: uint32(n * s.k), BCols: uint32(n * s.k)})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.k) * 12 }},
	"swiglu": {
		record: func(r *kernels.Recorder, _ gguf.Type, s shape, n int, m memory) error {
			return kernels.SwiGLU(r, shaders.GLUArgs{Gate: m.x, Up: m.x, Dst: m.dst, Count: uint32(n * s.k)})
		},
		bytes: func(_ gguf.Type, s shape, n int) int64 { return int64(n) * int64(s.k) * 12 }},
}

func kernelNames() []string { return slices.Sorted(maps.Keys(kernelOps)) }

// typesOf are those of the given types that the kernel has; one of no meaning where it takes none.
func (k kernelOp) typesOf(types []gguf.Type) []gguf.Type {
	if !k.typed {
		return types[:1]
	}
	return slices.DeleteFunc(slices.Clone(types), func(t gguf.Type) bool {
		if k.table == nil {
			return false
		}
		_, err := k.table(t)
		return err != nil
	})
}

// title is a benchmark's name: mul_mat_vec is BenchmarkMulMatVec.
func title(name string) string {
	var b strings.Builder
	b.WriteString("Benchmark")
	for _, w := range strings.Split(name, "_") {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// fits says why the device can't have a split.
func (d *device) fits(s kernels.CMTile) error {
	if s == (kernels.CMTile{}) {
		return nil
	}
	l := &d.dev.Physical.Limits
	if s.BM%s.WM != 0 || s.BN%s.WN != 0 {
		return unfitError("want BM and BN of whole WM and WN")
	}
	if n := s.SharedBytes(); n > int64(l.MaxSharedBytes) {
		return unfitError(fmt.Sprintf("%d bytes of shared memory, the device has %d", n, l.MaxSharedBytes))
	}
	if n := s.Lanes(int(l.Subgroup)); n > uint32(l.MaxWorkgroupInvocations) {
		return unfitError(fmt.Sprintf("%d lanes, the device has %d", n, l.MaxWorkgroupInvocations))
	}
	return nil
}

// activations is what the input or the output of an op takes, in bytes.
func activations(k kernelOp, s shape, n int) int64 {
	return int64(max(s.m, s.k)) * int64(n) * int64(max(1, k.products)) * 4
}
