package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// TestBarriers: a recorder puts a barrier exactly where an op touches what another since
// the last barrier wrote, or writes what it read. Devices that run dispatches side by
// side compute garbage without it; those that don't, like lavapipe, hide the mistake.
func TestBarriers(t *testing.T) {
	dev := vktest.Open(t)
	k, err := New(dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	b, err := dev.NewBuffer("activations", 1<<20, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	at := func(i uint64) uint64 { return b.Address + i<<12 } // eight rows of 64 values and room
	const rows, cols = 8, 64

	norm := func(x, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return RMSNorm(r, shaders.RMSNormArgs{X: at(x), W: at(100), Dst: at(dst), Rows: rows, Cols: cols, XStride: cols, DstStride: cols})
		}
	}
	add := func(x, y, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return Add(r, shaders.AddArgs{A: at(x), B: at(y), Dst: at(dst), Count: rows * cols, BCols: rows * cols})
		}
	}
	mul := func(x, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return MulMat(r, gguf.F32, shaders.MulMatArgs{W: at(101), X: at(x), Dst: at(dst), M: cols, K: cols, N: rows, XStride: cols, DstStride: cols})
		}
	}
	glu := func(g, u, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return SwiGLU(r, shaders.GLUArgs{Gate: at(g), Up: at(u), Dst: at(dst), Count: rows * cols})
		}
	}
	rope := func(x uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return Rope(r, shaders.RopeArgs{X: at(x), CosSin: at(102), Rows: rows, Heads: 1, HeadDim: cols, RopeDim: cols, XStride: cols})
		}
	}
	softMax := func(x, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return SoftMax(r, shaders.SoftMaxArgs{X: at(x), Dst: at(dst), Rows: rows, Cols: cols, Scale: 1})
		}
	}
	argmax := func(x, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return Argmax(r, shaders.ArgmaxArgs{X: at(x), Dst: at(dst), Rows: rows, Cols: cols})
		}
	}
	getRows := func(table, ids, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return GetRows(r, gguf.F32, shaders.GetRowsArgs{Table: at(table), IDs: at(ids), Dst: at(dst), Rows: rows, Cols: cols})
		}
	}
	kvAppend := func(k, v uint64, layer uint32) func(*Recorder) error {
		return func(r *Recorder) error {
			return KVAppend(r, gguf.F32, shaders.KVAppendArgs{K: at(k), V: at(v), Pages: at(110), Pos: at(111), Seq: at(112), Rows: rows, HeadsKV: 1,
				KeyLen: cols, ValLen: cols, MaxPages: 1, PagePositions: 32, LayerOff: layer << 14, KStride: cols, VStride: cols})
		}
	}
	attend := func(q, dst uint64, layer uint32) func(*Recorder) error {
		return func(r *Recorder) error {
			return FlashAttn(r, gguf.F32, shaders.FlashAttnArgs{Q: at(q), Dst: at(dst), Pages: at(110), Seen: at(111), Seq: at(112), Rows: rows, Heads: 1,
				HeadsKV: 1, KeyLen: cols, ValLen: cols, MaxPages: 1, PagePositions: 32, LayerOff: layer << 14, QStride: cols, DstStride: cols, Scale: 1})
		}
	}
	quantize := func(x, q uint64) func(*Recorder) error { // scales 2 KiB behind the bytes
		return func(r *Recorder) error {
			return QuantizeQ8(r, shaders.QuantizeQ8Args{X: at(x), Q: at(q), S: at(q) + 2048, Rows: rows, Cols: cols, XStride: cols})
		}
	}
	bytes := func(q, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return MulMatTeam(r, shaders.Int8, gguf.Q8_0, shaders.NoGLU, shaders.MulMatTeamArgs{W0: at(101), X: at(q), S: at(q) + 2048, Dst0: at(dst), M0: cols, K: cols, N: rows, DstStride: cols})
		}
	}
	products := func(q, k, v, x, dst uint64) func(*Recorder) error { // of addresses 0: none
		w := func(i uint64) uint64 {
			if i == 0 {
				return 0
			}
			return at(i)
		}
		return func(r *Recorder) error {
			return MulMatRope(r, gguf.Q8_0, RopeConstants{KeyLen: cols, ValLen: cols, RopeDim: cols, CacheF32: true}, shaders.MulMatRopeArgs{W0: w(q), W1: w(k), W2: w(v), X: at(x), S: at(x) + 2048, Dst: at(dst), CosSin: at(102),
				Pages: at(110), Pos: at(111), Seq: at(112), K: cols, N: rows, Heads: 1 | 1<<16, MaxPages: 1, PagePositions: 32})
		}
	}
	there := func(table, ids uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			return LookupExperts(r, shaders.LookupExpertsArgs{Residents: at(table), IDs: at(ids), Count: rows})
		}
	}
	copied := func(src, dst uint64) func(*Recorder) error {
		return func(r *Recorder) error {
			if err := r.Copy(b, int64(dst<<12), b, int64(src<<12), 4*rows*cols); err != nil {
				t.Fatal(err)
			}
			return nil
		}
	}

	for _, c := range []struct {
		name string
		ops  []func(*Recorder) error
		want int
	}{
		{"siblings share an input", []func(*Recorder) error{mul(0, 1), mul(0, 2), mul(0, 3)}, 0},
		{"read after write", []func(*Recorder) error{norm(0, 1), mul(1, 2)}, 1},
		{"write after read", []func(*Recorder) error{mul(1, 2), norm(0, 1)}, 1},
		{"write after write", []func(*Recorder) error{norm(0, 2), mul(1, 2)}, 1},
		{"one barrier serves both", []func(*Recorder) error{norm(0, 1), mul(1, 2), mul(1, 3)}, 1},
		{"in place", []func(*Recorder) error{mul(0, 1), rope(1), rope(1)}, 2},
		{"bytes", []func(*Recorder) error{norm(0, 1), quantize(1, 2), bytes(2, 3), bytes(2, 4), quantize(3, 2)}, 3},
		{"add", []func(*Recorder) error{mul(0, 1), add(2, 1, 2), norm(2, 3)}, 2},
		{"swiglu", []func(*Recorder) error{mul(0, 1), mul(0, 2), glu(1, 2, 1), mul(1, 3)}, 2},
		{"soft_max", []func(*Recorder) error{mul(0, 1), softMax(1, 2), argmax(2, 3)}, 2},
		{"a table that was computed", []func(*Recorder) error{add(0, 1, 2), getRows(2, 103, 4), norm(4, 5)}, 2},
		{"ids that were computed", []func(*Recorder) error{argmax(0, 3), getRows(104, 3, 4)}, 1},
		{"the embedding of a step", []func(*Recorder) error{copied(120, 10), copied(121, 11), getRows(10, 11, 0), norm(0, 1)}, 2},
		{"cache", []func(*Recorder) error{mul(0, 1), mul(0, 2), kvAppend(1, 2, 0), attend(3, 4, 0)}, 2},
		{"products into the cache", []func(*Recorder) error{quantize(1, 2), products(103, 104, 105, 2, 3), attend(3, 4, 0), products(103, 104, 105, 2, 5)}, 3},
		{"keys and values by themselves", []func(*Recorder) error{products(103, 104, 0, 2, 3), products(0, 0, 105, 2, 6), attend(6, 4, 1)}, 0},
		{"both of them", []func(*Recorder) error{products(103, 104, 0, 2, 3), products(0, 0, 105, 2, 6), attend(7, 4, 0)}, 1},
		{"values twice", []func(*Recorder) error{products(0, 0, 104, 2, 3), products(0, 0, 105, 2, 6)}, 1},
		{"cache of another layer", []func(*Recorder) error{kvAppend(1, 2, 0), attend(3, 4, 1)}, 0},
		{"page table", []func(*Recorder) error{copied(120, 110), attend(3, 4, 0)}, 1},
		{"a copy of what was ordered for dispatches alone", []func(*Recorder) error{norm(0, 1), mul(1, 2), copied(1, 5)}, 2},
		{"a copy over what was", []func(*Recorder) error{norm(0, 1), mul(1, 2), copied(120, 0)}, 2},
		{"a copy that nothing concerns", []func(*Recorder) error{norm(0, 1), mul(1, 2), copied(120, 5), mul(2, 3)}, 2},
		{"experts that were chosen", []func(*Recorder) error{argmax(0, 3), there(110, 3), there(120, 3)}, 1},
		{"addresses that were copied", []func(*Recorder) error{copied(120, 110), there(110, 3)}, 1},
		{"output of the step before", []func(*Recorder) error{argmax(0, 3), copied(3, 5)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool, err := dev.Compute.NewCommandPool()
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			cb, err := pool.New()
			if err != nil {
				t.Fatal(err)
			}
			if err := cb.Begin(); err != nil {
				t.Fatal(err)
			}
			r := k.Recorder(cb)
			for i, op := range c.ops {
				if err := op(r); err != nil {
					t.Fatalf("op %d: %v", i, err)
				}
			}
			if err := cb.End(); err != nil {
				t.Fatal(err)
			}
			if r.history.barriers != c.want {
				t.Errorf("%d barriers, wanted %d", r.history.barriers, c.want)
			}
		})
	}
}
