package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/vk"
)

const (
	leastRoom    = 32 << 20  // bytes each of X, its scales, other outputs, memory of the recorder, and an output
	mostRoom     = 512 << 20 // the same
	outputs      = 512       // dispatches that may run side by side, at most
	outputStride = 1 << 20   // bytes between their outputs
	pattern      = 16 << 20  // bytes of random weights, repeated
	longest      = 400 << 20 // bytes or so that a software device computes in one submission
	warmUp       = 2
)

// device is what measurements run on.
type device struct {
	instance *vk.Instance
	dev      *vk.Device
	kernels  *kernels.Kernels
	weights  *vk.Buffer
	rest     *vk.Buffer
	pages    *vk.Buffer // the KV cache and its table
	cache    cache
	experts  experts
	pool     *vk.CommandPool
	cb       *vk.CommandBuffer
	stamps   *vk.QueryPool
	timeline *vk.Timeline
	ticket   uint64
	scratch  int64                 // bytes
	ceiling  float64               // GB/s
	told     map[*vk.Pipeline]bool // what the driver made of it is printed
}

func bench(ctx context.Context, o *options, out io.Writer) error {
	d := &device{}
	defer d.close()
	if err := d.open(ctx, o); err != nil {
		return err
	}
	p := d.dev.Physical
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\npkg: leat/shaders\ncpu: %s, %s %s\n", runtime.GOOS, runtime.GOARCH, p.Name, p.DriverName, p.DriverInfo)
	if err := d.readCeiling(ctx, o, out); err != nil {
		return err
	}
	var best summary
	for _, name := range o.kernels {
		k := kernelOps[name]
		for _, t := range k.typesOf(o.types) {
			for _, s := range o.shapes {
				for _, n := range o.n {
					if err := d.kernel(ctx, o, out, &best, point{kernel: name, typ: t, shape: s, n: n}); err != nil {
						return err
					}
				}
			}
		}
	}
	best.print(out)
	if err := d.grids(ctx, o, out); err != nil {
		return err
	}
	return d.readCeiling(ctx, o, out)
}

// point is one thing to measure.
type point struct {
	kernel string
	typ    gguf.Type
	shape  shape
	n      int
	tile   kernels.Tile
	split  kernels.CMTile
}

func (p point) String() string {
	s := title(p.kernel)
	if kernelOps[p.kernel].typed {
		s += "/type=" + p.typ.String()
	}
	s += fmt.Sprintf("/shape=%v/n=%d", p.shape, p.n)
	if p.tile != (kernels.Tile{}) {
		s += "/tile=" + tileName(p.tile)
	}
	if p.split != (kernels.CMTile{}) {
		s += "/split=" + p.split.String()
	}
	return s
}

// tileName is rows x team x unroll x lanes, of each 0 for the engine's choice.
func tileName(t kernels.Tile) string {
	return fmt.Sprintf("%dx%dx%dx%d", t.Rows, t.Team, t.Unroll, t.Lanes)
}

// kernel measures a kernel with each tile or split.
func (d *device) kernel(ctx context.Context, o *options, out io.Writer, best *summary, p point) error {
	k := kernelOps[p.kernel]
	tiles, splits := []kernels.Tile{{}}, []kernels.CMTile{{}}
	if k.teams {
		tiles = o.tiles()
	}
	if k.splits {
		splits = o.splits
	}
	for i := range len(tiles) * len(splits) {
		p.tile, p.split = tiles[i/len(splits)], splits[i%len(splits)]
		samples, err := d.measure(ctx, o, p)
		if wrong := (*kernels.ArgError)(nil); errors.As(err, &wrong) || errors.As(err, new(unfitError)) {
			fmt.Fprintf(out, "# %v: %v\n", p, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		bytes := float64(k.reads(p, o.positions))
		flops := k.work(p, o.positions)
		for _, s := range samples {
			rate := bytes / float64(s.took.Nanoseconds()) * float64(s.times)
			line := fmt.Sprintf("%v %d %.0f ns/op %.1f GB/s %.1f %%read", p, s.times, float64(s.took.Nanoseconds())/float64(s.times), rate, 100*rate/d.ceiling)
			if flops > 0 {
				line += fmt.Sprintf(" %.2f TFLOP/s", flops/float64(s.took.Nanoseconds())*float64(s.times)/1e3)
			}
			fmt.Fprintln(out, line)
			best.add(p, rate/d.ceiling, flops/bytes*d.ceiling/1e3)
		}
		if err := d.tell(o, out); err != nil {
			return err
		}
	}
	return nil
}

// unfitError says why a point cannot be measured; the others can.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// sample is one submission: so many dispatches in that time.
type sample struct {
	took  time.Duration
	times int
}

// measure goes through the weights once for each sample.
func (d *device) measure(ctx context.Context, o *options, p point) ([]sample, error) {
	k := kernelOps[p.kernel]
	bytes := k.bytes(p.typ, p.shape, p.n)
	stride := (bytes + 255) &^ 255
	if bytes > o.memory {
		return nil, unfitError(fmt.Sprintf("%d MiB of weights, want -memory to be more", bytes>>20))
	}
	if most := activations(k, p.shape, p.n); most > o.room || o.overlap && most > outputStride {
		return nil, unfitError(fmt.Sprintf("%d bytes of activations, want at most %d, with -overlap %d", most, o.room, outputStride))
	}
	if k.matrices && !kernels.PromptsUseMatrices(d.dev.Physical, d.dev.Features) {
		return nil, unfitError("the device lacks cooperative matrices, or uses none unasked")
	}
	if err := d.fits(p.split); err != nil {
		return nil, err
	}
	if k.products > 0 {
		if err := d.openExperts(ctx, o, p); err != nil {
			return nil, err
		}
	}
	slots, times := max(1, o.memory/stride), 256
	if k.typed {
		times = int(max(1, min(slots, 1024)))
	}
	if d.dev.Physical.Type == vk.CPU {
		times = int(max(1, min(int64(times), longest/k.reads(p, o.positions)/int64(p.n))))
	}
	turn := 0
	record := func(r *kernels.Recorder) error {
		r.Override.Tile, r.Override.CMTile, r.Override.CMAttn, r.Rows.Role = p.tile, p.split, o.run, kernels.Decode
		room, quarter := uint64(o.room), o.room/4
		r.Memory.Tiles = kernels.Scratch{Address: d.rest.Address + uint64(d.rest.Bytes-d.scratch), Bytes: d.scratch}
		at, counters := d.rest.Address+3*room, d.rest.Address+3*room+3*uint64(quarter)
		r.Memory.Q8, r.Memory.Parts = kernels.Scratch{Address: at, Bytes: quarter}, kernels.Scratch{Address: at + uint64(quarter), Bytes: 2*quarter - shaders.GridBytes}
		r.Memory.Grids = kernels.Scratch{Address: counters - shaders.GridBytes, Bytes: shaders.GridBytes} // whatever is there: only time counts
		r.Memory.Counters = kernels.Scratch{Address: counters, Bytes: quarter}
		if o.join {
			r.Memory.Counters.Bytes = 0
		} else if err := r.Zero(d.rest, 3*o.room+3*quarter, mostRows*1024); err != nil {
			return err
		}
		for i := range times {
			m := memory{w: d.weights.Address + uint64(int64(turn)%slots*stride), x: d.rest.Address, s: d.rest.Address + room,
				more: d.rest.Address + 2*room, dst: d.rest.Address + 4*room, cache: d.cache, ahead: int64(o.ahead) << 20, experts: &d.experts, turn: turn, apart: o.rope == "apart"}
			if o.overlap {
				m.dst += uint64(i%outputs) * outputStride
			}
			m.cache = d.cache.of(turn)
			turn++
			if err := k.record(r, p.typ, p.shape, p.n, m); err != nil {
				return err
			}
		}
		return r.Finish()
	}
	var samples []sample
	for i := range warmUp + o.count {
		took, err := d.submit(ctx, record)
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			samples = append(samples, sample{took, times})
		}
	}
	return samples, nil
}

// readCeiling measures what plain reading gives.
func (d *device) readCeiling(ctx context.Context, o *options, out io.Writer) error {
	var rates []float64
	for i := range warmUp + o.count {
		took, err := d.submit(ctx, func(r *kernels.Recorder) error {
			return kernels.Checksum(r, shaders.ChecksumArgs{Src: d.weights.Address, Dst: d.rest.Address + 4*uint64(o.room), Count: uint32(o.memory / 16)})
		})
		if err != nil {
			return err
		}
		if i < warmUp {
			continue
		}
		rate := float64(o.memory) / float64(took.Nanoseconds())
		rates = append(rates, rate)
		fmt.Fprintf(out, "BenchmarkRead 1 %d ns/op %.1f GB/s\n", took.Nanoseconds(), rate)
	}
	slices.Sort(rates)
	d.ceiling = rates[len(rates)/2]
	return nil
}

func (d *device) open(ctx context.Context, o *options) (err error) {
	if d.instance, err = vk.Open(vk.InstanceOptions{}); err != nil {
		return err
	}
	p, err := d.instance.Pick(o.device)
	if err != nil {
		return err
	}
	o.forDevice(p.Type == vk.CPU)
	if d.dev, err = d.instance.NewDevice(p, vk.DeviceOptions{Enable: o.enable, Inspect: o.stats || o.ir != ""}); err != nil {
		return err
	}
	if d.kernels, err = kernels.New(d.dev, kernels.Options{FuseRope: o.rope == "within"}); err != nil {
		return err
	}
	if d.weights, err = d.dev.NewBuffer("weights", o.memory, vk.DeviceLocal); err != nil {
		return err
	}
	d.scratch = o.halves + o.room + 1<<20 // X in halves takes no more than X, and its scales
	rest := 5*o.room + d.scratch
	if o.overlap {
		rest += outputs * outputStride
	}
	if d.rest, err = d.dev.NewBuffer("activations", rest, vk.DeviceLocal); err != nil {
		return err
	}
	if d.pool, err = d.dev.Compute.NewCommandPool(); err != nil {
		return err
	}
	if d.cb, err = d.pool.New(); err != nil {
		return err
	}
	if d.stamps, err = d.dev.NewQueryPool(2); err != nil {
		return err
	}
	if d.timeline, err = d.dev.NewTimeline("kernelbench"); err != nil {
		return err
	}
	if err := d.fill(ctx); err != nil {
		return err
	}
	return d.openCache(ctx, o)
}

// fill puts random bytes everywhere: what toggles few wires draws less power, and runs faster than weights do.
func (d *device) fill(ctx context.Context) error {
	up, err := d.dev.NewBuffer("random bytes", pattern, vk.Upload)
	if err != nil {
		return err
	}
	defer up.Close()
	rng, m := rand.New(rand.NewPCG(1, 2)), up.Mapped()
	for i := 0; i < len(m); i += 8 {
		v := rng.Uint64()
		for j := range 8 {
			m[i+j] = byte(v>>(8*j)) &^ 0x40 // as halves and as floats: no exponent is all ones
		}
	}
	_, err = d.submit(ctx, func(*kernels.Recorder) error {
		for _, b := range []*vk.Buffer{d.weights, d.rest} {
			for off := int64(0); off < b.Bytes; off += pattern {
				d.cb.Copy(b, off, up, 0, min(pattern, b.Bytes-off))
			}
		}
		return nil
	})
	return err
}

// submit runs what record records and returns how long the device took.
func (d *device) submit(ctx context.Context, record func(*kernels.Recorder) error) (time.Duration, error) {
	return d.timed(ctx, func(cb *vk.CommandBuffer) error { return record(d.kernels.Recorder(cb)) })
}

// timed is submit for commands of any kind.
func (d *device) timed(ctx context.Context, record func(*vk.CommandBuffer) error) (time.Duration, error) {
	if err := d.cb.Begin(); err != nil {
		return 0, err
	}
	d.cb.ResetQueries(d.stamps, 0, d.stamps.Count)
	d.cb.WriteTimestamp(d.stamps, 0)
	if err := record(d.cb); err != nil {
		return 0, err
	}
	d.cb.WriteTimestamp(d.stamps, 1)
	if err := d.cb.End(); err != nil {
		return 0, err
	}
	d.ticket++
	start := time.Now()
	err := d.dev.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{d.cb}, Signals: []vk.Point{{Timeline: d.timeline, Value: d.ticket}}})
	if err != nil {
		return 0, err
	}
	if err := d.timeline.Wait(ctx, d.ticket); err != nil {
		return 0, err
	}
	if d.dev.Compute.TimestampBits == 0 {
		return time.Since(start), nil
	}
	var ticks [2]uint64
	if err := d.stamps.Read(0, ticks[:]); err != nil {
		return 0, err
	}
	return max(1, d.stamps.Duration(ticks[0], ticks[1])), nil
}

func (d *device) close() {
	if d.dev != nil {
		d.dev.WaitIdle() // an error shows in what failed before
	}
	if d.timeline != nil {
		d.timeline.Close()
	}
	if d.stamps != nil {
		d.stamps.Close()
	}
	if d.pool != nil {
		d.pool.Close()
	}
	for _, b := range []*vk.Buffer{d.weights, d.rest, d.pages, d.experts.room} {
		if b != nil {
			b.Close()
		}
	}
	if d.kernels != nil {
		d.kernels.Close()
	}
	if d.dev != nil {
		d.dev.Close()
	}
	if d.instance != nil {
		d.instance.Close()
	}
}
