package conform

import (
	"testing"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// benchmark is a device with memory for benchmarks: weights, then 64 MiB for all else.
type benchmark struct {
	dev      *vk.Device
	kernels  *kernels.Kernels
	buf      *vk.Buffer
	cb       *vk.CommandBuffer
	timeline *vk.Timeline
	ticket   uint64
	weights  int64 // bytes
	rest     uint64
}

// newBenchmark takes 512 MiB of weights on a GPU, so that no cache holds them, and 8 MiB on a software device.
func newBenchmark(b *testing.B) *benchmark {
	x := &benchmark{dev: vktest.Open(b), weights: 512 << 20}
	if x.dev.Physical.Type == vk.CPU {
		x.weights = 8 << 20
	}
	var err error
	must := func() {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	x.kernels, err = kernels.New(x.dev, kernels.Options{})
	must()
	b.Cleanup(x.kernels.Close)
	x.buf, err = x.dev.NewBuffer("benchmark", x.weights+64<<20, vk.DeviceLocal)
	must()
	b.Cleanup(x.buf.Close)
	x.rest = x.buf.Address + uint64(x.weights)
	pool, err := x.dev.Compute.NewCommandPool()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	x.cb, err = pool.New()
	must()
	x.timeline, err = x.dev.NewTimeline("benchmark")
	must()
	b.Cleanup(x.timeline.Close)
	x.submit(b, func(*kernels.Recorder) error {
		x.cb.Fill(x.buf, 0, x.buf.Bytes, 0x2c002c00) // small numbers in every format
		x.cb.Fill(x.buf, x.weights, 1<<20, 0)        // ids, positions, sequences
		return nil
	})
	return x
}

func (x *benchmark) submit(b *testing.B, record func(*kernels.Recorder) error) (bytes, flops float64) {
	if err := x.cb.Begin(); err != nil {
		b.Fatal(err)
	}
	r := x.kernels.Recorder(x.cb)
	r.Memory.Grids = kernels.Scratch{Address: x.rest + 60<<20, Bytes: shaders.GridBytes}
	if err := record(r); err != nil {
		b.Fatal(err)
	}
	if err := x.cb.End(); err != nil {
		b.Fatal(err)
	}
	x.ticket++
	err := x.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{x.cb}, Signals: []vk.Point{{Timeline: x.timeline, Value: x.ticket}}})
	if err != nil {
		b.Fatal(err)
	}
	if err := x.timeline.Wait(b.Context(), x.ticket); err != nil {
		b.Fatal(err)
	}
	return r.Cost()
}

// run measures whole submissions: what is recorded, its dispatch and the wait for it.
func (x *benchmark) run(b *testing.B, record func(*kernels.Recorder) error) {
	bytes, flops := x.submit(b, record) // builds the pipeline
	b.SetBytes(int64(bytes))
	for b.Loop() {
		x.submit(b, record)
	}
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func (x *benchmark) mulMat(b *testing.B, n int, weights int64) {
	const k = 4096
	for _, t := range quant.Types() {
		rowBytes, err := t.RowBytes(k)
		if err != nil {
			b.Fatal(err)
		}
		m := int(weights / rowBytes)
		a := shaders.MulMatArgs{W: x.buf.Address, X: x.rest + 2<<20, Dst: x.rest + 4<<20, M: uint32(m), K: k, N: uint32(n), XStride: k, DstStride: uint32(m)}
		b.Run(t.String(), func(b *testing.B) {
			x.run(b, func(r *kernels.Recorder) error { return kernels.MulMat(r, t, a) })
		})
	}
}

func BenchmarkMulMatVec(b *testing.B) {
	x := newBenchmark(b)
	x.mulMat(b, 1, x.weights)
}

func BenchmarkMulMat(b *testing.B) {
	x := newBenchmark(b)
	x.mulMat(b, 64, x.weights/16)
}

func BenchmarkGetRows(b *testing.B) {
	x := newBenchmark(b)
	for _, t := range quant.Types() {
		a := shaders.GetRowsArgs{Table: x.buf.Address, IDs: x.rest, Dst: x.rest + 4<<20, Rows: 512, Cols: 4096}
		b.Run(t.String(), func(b *testing.B) {
			x.run(b, func(r *kernels.Recorder) error { return kernels.GetRows(r, t, a) })
		})
	}
}

// BenchmarkFlashAttn decodes one token after 1024 others, 32 heads on 8 of 128 values.
func BenchmarkFlashAttn(b *testing.B) {
	const positions, heads, headsKV, size = 1024, 32, 8, 128
	x := newBenchmark(b)
	page := x.buf.Address // one page holds all
	x.submit(b, func(*kernels.Recorder) error {
		x.cb.Fill(x.buf, x.weights, 4, 0)
		x.cb.Fill(x.buf, x.weights+4, 4, positions-1)
		x.cb.Fill(x.buf, x.weights+64, 4, uint32(page))
		x.cb.Fill(x.buf, x.weights+68, 4, uint32(page>>32))
		return nil
	})
	for _, t := range shaders.KVTypes {
		a := shaders.FlashAttnArgs{Q: x.rest + 2<<20, Dst: x.rest + 4<<20, Pages: x.rest + 64, Seen: x.rest, Seq: x.rest + 128, Rows: 1,
			Heads: heads, HeadsKV: headsKV, KeyLen: size, ValLen: size, MaxPages: 1, PagePositions: positions, QStride: heads * size, DstStride: heads * size, Scale: 0.1}
		b.Run(t.String(), func(b *testing.B) {
			x.run(b, func(r *kernels.Recorder) error { return kernels.FlashAttn(r, t, a) })
		})
	}
}

// BenchmarkRows are the ops between the products, on 512 rows of 4096.
func BenchmarkRows(b *testing.B) {
	const rows, cols = 512, 4096
	x := newBenchmark(b)
	in, out, w := x.rest+4<<20, x.rest+16<<20, x.rest+2<<20
	for name, record := range map[string]func(*kernels.Recorder) error{
		"rms_norm": func(r *kernels.Recorder) error {
			return kernels.RMSNorm(r, shaders.RMSNormArgs{X: in, W: w, Dst: out, Rows: rows, Cols: cols, XStride: cols, DstStride: cols, Eps: 1e-5})
		},
		"soft_max": func(r *kernels.Recorder) error {
			return kernels.SoftMax(r, shaders.SoftMaxArgs{X: in, Dst: out, Rows: rows, Cols: cols, Scale: 1})
		},
		"rope": func(r *kernels.Recorder) error {
			return kernels.Rope(r, shaders.RopeArgs{X: in, CosSin: w, Rows: rows, Heads: 32, HeadDim: 128, RopeDim: 128, XStride: cols, Neox: 1})
		},
		"swiglu": func(r *kernels.Recorder) error {
			return kernels.SwiGLU(r, shaders.GLUArgs{Gate: in, Up: in, Dst: out, Count: rows * cols})
		},
		"geglu": func(r *kernels.Recorder) error {
			return kernels.GLU(r, kernels.GELU, shaders.GLUArgs{Gate: in, Up: in, Dst: out, Count: rows * cols})
		},
		"add": func(r *kernels.Recorder) error {
			return kernels.Add(r, shaders.AddArgs{A: in, B: in, Dst: out, Count: rows * cols, BCols: rows * cols})
		},
		"argmax": func(r *kernels.Recorder) error {
			return kernels.Argmax(r, shaders.ArgmaxArgs{X: in, Dst: out, Rows: rows, Cols: cols})
		},
	} {
		b.Run(name, func(b *testing.B) { x.run(b, record) })
	}
}

// BenchmarkKVAppend stores 512 rows of 8 heads of 128.
func BenchmarkKVAppend(b *testing.B) {
	x := newBenchmark(b)
	page := x.buf.Address
	x.submit(b, func(*kernels.Recorder) error {
		x.cb.Fill(x.buf, x.weights+64<<10, 4, uint32(page))
		x.cb.Fill(x.buf, x.weights+64<<10+4, 4, uint32(page>>32))
		return nil
	})
	for _, t := range []gguf.Type{gguf.F16, gguf.F32} {
		a := shaders.KVAppendArgs{K: x.rest + 4<<20, V: x.rest + 4<<20, Pages: x.rest + 64<<10, Pos: x.rest, Seq: x.rest, Rows: 512,
			HeadsKV: 8, KeyLen: 128, ValLen: 128, MaxPages: 1, PagePositions: 256, KStride: 1024, VStride: 1024}
		b.Run(t.String(), func(b *testing.B) {
			x.run(b, func(r *kernels.Recorder) error { return kernels.KVAppend(r, t, a) })
		})
	}
}
