package calibrate

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

// The shapes that rates are measured at: those of an 8B model.
const (
	width        = 4096
	pagePos      = 32 // positions of a page of the cache
	headDim      = 128
	heads        = width / headDim
	headsKV      = 8
	positions    = 1024
	restBytes    = 56 << 20 // vectors behind the weights, and a recorder's memory
	decoderBytes = 10 << 20 // half of it for two inputs of maxCols rows in bytes
	counterBytes = 4 << 10  // of the parts of attention
	maxRows      = 8192     // of the matrix in products with many vectors
	maxCols      = 512
)

// Kernels measures kernels on a device. Close it.
type Kernels struct {
	dev     *vk.Device
	kernels *kernels.Kernels
	run     *runner
	weights *vk.Buffer // weights, then restBytes
	inputs  *vk.Buffer // host memory
	total   int64      // of the weights
}

// NewKernels prepares measurements that read total bytes of weights, by kernels made as o says.
func NewKernels(ctx context.Context, dev *vk.Device, total int64, o kernels.Options) (*Kernels, error) {
	k := &Kernels{dev: dev, total: total}
	if err := k.open(ctx, o); err != nil {
		k.Close()
		return nil, fmt.Errorf("measure kernels: %w", err)
	}
	return k, nil
}

func (k *Kernels) open(ctx context.Context, o kernels.Options) (err error) {
	if k.kernels, err = kernels.New(k.dev, o); err != nil {
		return err
	}
	if k.run, err = newRunner(k.dev); err != nil {
		return err
	}
	if k.weights, err = k.dev.NewBuffer("weights to read", k.total+restBytes, vk.DeviceLocal); err != nil {
		return err
	}
	if k.inputs, err = k.dev.NewBuffer("inputs", 4096, vk.Upload); err != nil {
		return err
	}
	_, err = k.run.submit(ctx, func(cb *vk.CommandBuffer) error {
		counters := k.weights.Bytes - decoderBytes
		cb.Fill(k.weights, 0, counters, smallNumbers)
		cb.Fill(k.weights, counters, counterBytes, 0)
		cb.Fill(k.weights, counters+counterBytes, decoderBytes-counterBytes, smallNumbers)
		return nil
	})
	return err
}

const smallNumbers = 0x2c002c00 // in every format

// warm comes before what is timed.
func (k *Kernels) warm(ctx context.Context) error {
	return k.run.warm(ctx, func(cb *vk.CommandBuffer, times int) error {
		for range times {
			cb.Fill(k.weights, 0, k.total, smallNumbers)
		}
		return nil
	})
}

// Close frees what NewKernels made.
func (k *Kernels) Close() {
	if k.run != nil {
		k.run.close()
	}
	for _, b := range []*vk.Buffer{k.weights, k.inputs} {
		if b != nil {
			b.Close()
		}
	}
	if k.kernels != nil {
		k.kernels.Close()
	}
}

// times records an op so many times.
func (k *Kernels) times(ctx context.Context, op func(r *kernels.Recorder) error) (time.Duration, error) {
	if err := k.warm(ctx); err != nil {
		return 0, err
	}
	return k.run.repeat(ctx, func(cb *vk.CommandBuffer, times int) error {
		r := k.decoder(cb)
		for range times {
			if err := op(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// decoder records as a step of one row does. Its own memory ends what lies behind the weights.
func (k *Kernels) decoder(cb *vk.CommandBuffer) *kernels.Recorder {
	r := k.kernels.Recorder(cb)
	end := k.weights.Address + uint64(k.weights.Bytes)
	r.Rows.Role = kernels.Decode
	r.Memory.Counters = kernels.Scratch{Address: end - decoderBytes, Bytes: counterBytes}
	r.Memory.Parts = kernels.Scratch{Address: end - decoderBytes + counterBytes, Bytes: decoderBytes/2 - counterBytes - shaders.GridBytes}
	r.Memory.Grids = kernels.Scratch{Address: end - decoderBytes/2 - shaders.GridBytes, Bytes: shaders.GridBytes} // whatever is there: only time counts
	r.Memory.Q8 = kernels.Scratch{Address: end - decoderBytes/2, Bytes: decoderBytes / 2}
	return r
}

// product is a matrix of m rows of k values times n vectors, the vectors and the result behind the weights.
func (k *Kernels) product(m, cols, n int64) shaders.MulMatArgs {
	x := k.weights.Address + uint64(k.total)
	return shaders.MulMatArgs{
		W: k.weights.Address, X: x, Dst: x + maxCols*width*4, M: uint32(m), K: uint32(cols), N: uint32(n), XStride: uint32(cols), DstStride: uint32(m),
	}
}

// Reads lets the kernel that reads most of a model at decode read all the weights.
func (k *Kernels) Reads(ctx context.Context, t gguf.Type) (Rate, error) {
	r, _, err := k.reads(ctx, t, width)
	return r, err
}

func (k *Kernels) reads(ctx context.Context, t gguf.Type, cols int64) (r Rate, rows int64, err error) {
	row, err := t.RowBytes(cols)
	if err != nil {
		return r, 0, err
	}
	rows = min(k.total/row, (restBytes-decoderBytes-maxCols*width*4)/4)
	took, err := k.times(ctx, func(r *kernels.Recorder) error { return kernels.MulMat(r, t, k.product(rows, cols, 1)) })
	if err != nil {
		return r, 0, fmt.Errorf("measure mul_mat_vec of %v: %w", t, err)
	}
	return rate(rows*row, took), rows, nil
}

// ByRow tells what a product with one vector costs for each byte of the weights from what
// it costs for each row, by rows of two lengths.
func (k *Kernels) ByRow(ctx context.Context, t gguf.Type) (bytesPerSec, rowSeconds float64, err error) {
	var long, short Rate
	var rows, many int64
	for range 2 { // in turn, so that a moment's load doesn't tell on one of them alone
		for _, x := range []struct {
			best *Rate
			rows *int64
			cols int64
		}{{&long, &rows, width}, {&short, &many, width / 8}} {
			var r Rate
			if r, *x.rows, err = k.reads(ctx, t, x.cols); err != nil {
				return 0, 0, err
			}
			if r.BytesPerSec > x.best.BytesPerSec {
				*x.best = r
			}
		}
	}
	// Seconds a byte: 1/rate = 1/bytesPerSec + rowSeconds × rows/bytes.
	perByte := func(r Rate) float64 { return 1 / r.BytesPerSec }
	density := func(r Rate, rows int64) float64 { return float64(rows) / float64(r.Bytes) }
	rowSeconds = max(0, (perByte(short)-perByte(long))/(density(short, many)-density(long, rows)))
	left := perByte(long) - rowSeconds*density(long, rows)
	if left <= 0 {
		return long.BytesPerSec, 0, nil
	}
	return 1 / left, rowSeconds, nil
}

// Flops is the rate of products with many vectors, in operations a second. It grows the
// product until it takes long enough to tell, so that a slow device isn't kept busy.
func (k *Kernels) Flops(ctx context.Context, t gguf.Type) (float64, error) {
	row, err := t.RowBytes(width)
	if err != nil {
		return 0, err
	}
	if err := k.warm(ctx); err != nil {
		return 0, err
	}
	best := 0.0
	for _, size := range []struct{ m, n int64 }{{256, 64}, {1024, 256}, {4096, maxCols}, {maxRows, maxCols}} {
		if size.m*row > k.total || size.m*size.n*4 > restBytes-decoderBytes-maxCols*width*4 {
			break
		}
		var took time.Duration
		for range 2 { // the first builds the pipeline
			took, err = k.run.submit(ctx, func(cb *vk.CommandBuffer) error {
				r := k.decoder(cb)
				r.Rows.Role = kernels.Prompt // as a long step does
				return kernels.MulMat(r, t, k.product(size.m, width, size.n))
			})
			if err != nil {
				return 0, fmt.Errorf("measure mul_mat of %v: %w", t, err)
			}
		}
		best = max(best, 2*float64(size.m)*float64(size.n)*width/took.Seconds())
		if took > 20*time.Millisecond {
			break
		}
	}
	return best, nil
}

// Attention is the rate of one row of attention, in operations a second: what a longer
// cache adds.
func (k *Kernels) Attention(ctx context.Context, t gguf.Type) (float64, error) {
	page := headsKV * pagePos * 2 * shaders.KVRowBytes(t, headDim)
	if page*positions/pagePos > k.total {
		return 0, fmt.Errorf("measure flash_attn: the cache does not fit into %d bytes", k.total)
	}
	m := k.inputs.Mapped()
	for i := range positions / pagePos {
		binary.LittleEndian.PutUint64(m[8*i:], k.weights.Address+uint64(int64(i)*page))
	}
	const seen, seq = 2048, 2064
	x := k.weights.Address + uint64(k.total)
	measure := func(n int) (time.Duration, error) {
		binary.LittleEndian.PutUint32(m[seen:], 0)
		binary.LittleEndian.PutUint32(m[seen+4:], uint32(n-1))
		binary.LittleEndian.PutUint32(m[seq:], 0)
		return k.times(ctx, func(r *kernels.Recorder) error {
			return kernels.FlashAttn(r, t, shaders.FlashAttnArgs{
				Q: x, Dst: x + 1<<20, Pages: k.inputs.Address, Seen: k.inputs.Address + seen, Seq: k.inputs.Address + seq,
				Rows: 1, Heads: heads, HeadsKV: headsKV, KeyLen: headDim, ValLen: headDim, MaxPages: positions / pagePos, PagePositions: pagePos,
				QStride: width, DstStride: width, Scale: 0.1,
			})
		})
	}
	few, err := measure(pagePos)
	if err != nil {
		return 0, fmt.Errorf("measure flash_attn of %v: %w", t, err)
	}
	many, err := measure(positions)
	if err != nil {
		return 0, fmt.Errorf("measure flash_attn of %v: %w", t, err)
	}
	n := positions - pagePos
	if many -= few; many <= 0 { // nothing but the dispatch
		many, n = many+few, positions
	}
	return 4 * float64(n) * width / many.Seconds(), nil
}

// Waiting is the time of a small kernel that waits for the one before it, and the time of a step
// in addition to its kernels: for submitting it, and for noticing that it has ended.
func (k *Kernels) Waiting(ctx context.Context) (dispatch, step time.Duration, err error) {
	if err := k.warm(ctx); err != nil {
		return 0, 0, err
	}
	const few, many = 1, 513
	x := k.weights.Address + uint64(k.total)
	chain := func(n int) (best time.Duration, err error) {
		for i := range 4 {
			begin := time.Now()
			_, err := k.run.submit(ctx, func(cb *vk.CommandBuffer) error {
				r := k.decoder(cb)
				for j := range n {
					var err error
					if j%2 == 0 {
						err = kernels.RMSNorm(r, shaders.RMSNormArgs{X: x, W: x + 1<<20, Dst: x + 2<<20, Rows: 1, Cols: width / 2, XStride: width / 2, DstStride: width / 2, Eps: 1e-5})
					} else {
						err = kernels.Add(r, shaders.AddArgs{A: x + 2<<20, B: x, Dst: x, Count: width / 2, BCols: width / 2})
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return 0, fmt.Errorf("measure what a kernel costs: %w", err)
			}
			if took := time.Since(begin); i == 1 || i > 1 && took < best { // the first builds the pipelines
				best = took
			}
		}
		return best, nil
	}
	short, err := chain(few)
	if err != nil {
		return 0, 0, err
	}
	long, err := chain(many)
	if err != nil {
		return 0, 0, err
	}
	return max(0, (long-short)/(many-few)), short, nil
}
