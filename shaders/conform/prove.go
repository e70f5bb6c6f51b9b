package conform

import (
	"context"
	"errors"
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
	"leat/vk"
)

const (
	proveBytes = 12 << 20 // of memory; the largest case needs 6 MiB
	proveSeed  = 1        // what passed once passes always
)

// Prove runs a pipeline on a few small cases that reach all of its code and compares with the reference: it is a
// [kernels.Options.Test]. k has the pipeline, untested. The error is a [*MismatchError] where it computes wrong.
func Prove(k *kernels.Kernels, v kernels.Variant) error {
	cases := proofs(&v)
	if len(cases) == 0 {
		return fmt.Errorf("prove %s: there is no case for it", v.Row.Name)
	}
	s, err := suiteOf(k.Device(), k, proveSeed, proveBytes)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range cases {
		if _, err := s.Run(context.Background(), &cases[i]); err != nil {
			return errors.Join(err, idle(k.Device()))
		}
	}
	return nil
}

// idle waits for what may still run where waiting for it failed: its memory is freed next.
func idle(dev *vk.Device) error {
	if err := dev.WaitIdle(); errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	return nil
}

// proofs are cases that run no pipeline of v's row but v.
func proofs(v *kernels.Variant) []Case {
	kv := v.Row.Type
	switch v.Row.Op {
	case "mul_mat_vec":
		if v.Row.Variant == shaders.Turned {
			return turnedProofs(v)
		}
		return teamProofs(v)
	case "mul_mat_vec_id":
		return teamIDProofs(v)
	case "quantize_q8":
		return []Case{quantizeQ8(7, 288, 5, 1), quantizeQ8(1, 4096, 0, 1e4)}
	case "tile_f16":
		if v.Row.Variant == shaders.FP32 {
			return []Case{tileF16(131, 1030, 4, 1e4)}
		}
		run := int(v.Lanes) * 4
		return []Case{tileRows(v.Row.Variant, 5, int(v.Per-1)*run+36, 4, 1), tileRows(v.Row.Variant, 2, int(v.Per)*run, 0, 1)}
	case "dequant_f16":
		return []Case{dequantF16(v.Row.Type, 133, 1024)}
	case "rms_norm":
		run := int(v.Lanes) * 4
		return []Case{rmsNormQ8(2, int(v.Per-1)*run+32, 4), rmsNormQ8(1, int(v.Per)*run, 0)}
	case "rope":
		odd := 80
		if shaders.KVQuantised(kv) {
			odd = 96
		}
		if v.Row.Variant == shaders.NormKV {
			n := 4 * int(v.RowLanes)
			return []Case{ropeNormKV(kv, 4, 2, n, 64, n, true), ropeNormKV(kv, 3, 1, max(n/2+32, n*3/4), odd, 20, false)}
		}
		return []Case{ropeKV(kv, 4, 2, 64, 64, 64, true), ropeKV(kv, 3, 1, odd, odd, 20, false)}
	case "topk_moe":
		if v.Row.Variant == shaders.Routed {
			return routedProofs(v)
		}
		n := int(v.Lanes * v.Per)
		return []Case{topKHeld(ref.Router{Experts: n, Used: min(8, n), Normalise: true, Scale: 1}, 9),
			topKHeld(ref.Router{Experts: n - 1, Used: min(5, n-1), Sigmoid: true, Scale: 2, Bias: []float32{}}, 9),
			topKHeld(ref.Router{Experts: n, Used: min(8, n/2), Sigmoid: true, Normalise: true, Scale: 1, Groups: 4, GroupsUsed: 2, GroupBest: 2, Bias: []float32{}}, 5),
			topKHeld(ref.Router{Experts: n, Used: min(8, n), Scale: 1}, 1),
			topKHeld(ref.Router{Experts: n - 1, Used: 3, Late: true, Scale: 1}, 5)}
	case "argmax":
		return []Case{argmax("ties and NaN", 9, 5003, true, tied), argmax("ties and NaN", 9, 100001, true, tied)}
	case "mul_mat_id":
		n := int(v.CMTile.BN)
		return []Case{idHalves(v.Row.Type, idShape{m: int(v.CMTile.BM) + 5, k: 512, rows: n + n/2, used: 2, experts: 3}, v.GLU != 0, v.CMTile)}
	case "mul_mat":
		n := 100
		switch {
		case v.CMTile.BN <= 64:
			n = 40
		case v.CMTile.BN > shaders.TileRows:
			n = 300
		}
		if v.Row.Variant == shaders.BlocksCM && v.GLU != shaders.NoGLU {
			return []Case{gatedBlocks(v.Row.Type, 130, 512, n, 0, v.CMTile)}
		}
		if v.Row.Variant == shaders.BlocksCM {
			return []Case{mulMatBlocks(v.Row.Type, 260, 512, n, 0, v.CMTile)}
		}
		return []Case{mulMatSplit(gguf.Q8_0, 260, 288, n, 0, 0, v.CMTile)}
	}
	return attnProofs(v)
}

func attnProofs(v *kernels.Variant) []Case {
	switch v.Row.Variant {
	case shaders.Split, shaders.Joined:
		joined := v.Row.Variant == shaders.Joined
		s := attnShape{heads: 2 * int(v.Group), headsKV: 2, keyLen: int(v.Key), valLen: int(v.Val), page: 9 * int(v.Run)} // of no larger runs
		if shaders.KVQuantised(v.Row.Type) && s.page%shaders.KVPage != 0 {
			s.page *= shaders.KVPage
		}
		masked := s
		masked.window, masked.softCap, masked.sinks = 50, 2, 1
		return []Case{attnFew(v.Row.Type, s, joined), attnFew(v.Row.Type, masked, joined)}
	case shaders.Join:
		return []Case{attnJoin(attnShape{heads: 4, headsKV: 4, keyLen: 64, valLen: 64, page: 32}, shaders.MaxParts),
			attnJoin(attnShape{heads: 4, headsKV: 4, keyLen: 64, valLen: 64, page: 32, window: 50, sinks: 1}, shaders.MaxParts)}
	case shaders.CM:
		s := attnShape{heads: 4, headsKV: 2, keyLen: int(v.Key), valLen: int(v.Val), page: 32}
		if v.Options&shaders.WithWindow != 0 {
			s.window = 50
		}
		if v.Options&shaders.WithSoftCap != 0 {
			s.softCap = 2
		}
		if v.Options&shaders.WithSinks != 0 {
			s.sinks = 1
		}
		s.split = v.CMAttn
		return []Case{attnRun(v.Row.Type, s, 65, 33)}
	}
	return nil
}

// teamProofs have rows for more than one workgroup, and so many values in a row that each lane takes several chunks, but
// not all as many; as many rows of X as the kernel has columns, and fewer.
func teamProofs(v *kernels.Variant) []Case {
	chunk := int(shaders.Chunk(v.Row.Variant, v.Row.Type))
	block := max(chunk, v.Row.Type.BlockSize())
	k := (chunk*int(v.Tile.Team*(2*v.Tile.Unroll+1)) + block) / block * block
	if v.Row.Variant == shaders.Straight { // all of a row, and all but a part
		block = 512
		k = int(v.Tile.Team/8*v.Tile.Unroll*256) / block * block
	}
	n, m, short := int(v.Cols), int(v.Outputs()), block
	if v.Row.Variant == shaders.Persistent { // all of a row, and as little as has the same tile; more places than workgroups
		short = int(v.Tile.Team*(v.Tile.Unroll-1))*64/block*block + block
		k = max(short, int(v.Tile.Team*v.Tile.Unroll)*64/block*block)
		if v.GLU == shaders.GLUBytes {
			m = max(m, 32)
		}
		m *= fewGroups
	}
	fewer := n/2 + 1
	switch {
	case v.GLU == shaders.GLUFloats:
		return []Case{gates(v.Row, m+3, k, n, false, v.Tile), gates(v.Row, 3, short, fewer, false, v.Tile)}
	case v.GLU == shaders.GLUBytes:
		return []Case{gates(v.Row, m+32, k, n, true, v.Tile), gates(v.Row, 32, short, fewer, true, v.Tile)}
	}
	return []Case{siblings(v.Row, [3]int{m + 1, 5, 2}, k, n, v.Tile), residual(v.Row, m+3, short, fewer, v.Tile)}
}
