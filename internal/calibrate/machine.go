package calibrate

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk"
)

// Device is what a device, its driver and these kernels reach.
type Device struct {
	Name          string              `json:"name"`
	Measured      time.Time           `json:"measured"`
	Link          Link                `json:"link"`
	OneQueue      bool                `json:"one_queue"` // uploads and kernels take turns
	Rests         bool                `json:"rests"`     // it lowers its clock where it has little to do: a GPU
	DispatchNanos int64               `json:"dispatch_ns"`
	StepNanos     int64               `json:"step_ns"`
	Types         map[string]Products `json:"types"`     // by type of the weights
	Attention     map[string]float64  `json:"attention"` // flop/s of one row, by type of the cache
}

// Products are the rates of one type of weights.
type Products struct {
	ReadPerSec float64 `json:"read_bytes_per_second"` // times one vector
	RowSeconds float64 `json:"row_seconds"`           // of each row beside its bytes
	Flops      float64 `json:"flops"`                 // times many
}

// Sizes are how many bytes are worth measuring with on a device.
func Sizes(p *vk.PhysicalDevice) (upload, read int64) {
	upload, read = 256<<20, 512<<20 // what is read fits no cache: some GPUs have 256 MiB
	if p.Type == vk.CPU {
		upload, read = 64<<20, 16<<20 // decoding the weights holds it up, not reading them
	}
	return Fitting(p, upload), Fitting(p, read)
}

// Fitting bounds a size by what is free, in whole pieces of an upload.
func Fitting(p *vk.PhysicalDevice, bytes int64) int64 {
	return max(pieceBytes, min(bytes, p.FreeBytes()/4)/pieceBytes*pieceBytes)
}

// Wanted says what a model needs to know of a device: the types of its weights and of its KV cache.
type Wanted struct {
	Types []gguf.Type // of its weights
	KV    gguf.Type   // of the cache

	Kernels kernels.Options // Logger and Cache of those that measure
}

// lacks returns what of w is not in d.
func (d *Device) lacks(w Wanted) Wanted {
	var missing Wanted
	for _, t := range w.Types {
		if _, ok := d.Types[t.String()]; !ok {
			missing.Types = append(missing.Types, t)
		}
	}
	missing.KV, missing.Kernels = w.KV, w.Kernels
	return missing
}

func (d *Device) complete(w Wanted) bool {
	_, attention := d.Attention[w.KV.String()]
	return d.Link.Idle > 0 && attention && len(d.lacks(w).Types) == 0
}

// measure measures what w wants and d lacks. It calls keep after each measurement, so that an interrupt loses one at most. It first
// measures the link and the cost of a dispatch, which every model needs.
func (d *Device) measure(ctx context.Context, dev *vk.Device, w Wanted, keep func()) error {
	w.Kernels.Test = selftest.Prove
	_, read := Sizes(dev.Physical)
	if d.Link.Idle == 0 {
		t := gguf.F16
		if len(w.Types) > 0 {
			t = w.Types[0]
		}
		var err error
		if d.Link, err = LinkOf(ctx, dev, t, w.Kernels); err != nil {
			return err
		}
		d.OneQueue, d.Rests = oneQueue(dev), dev.Physical.Type != vk.CPU
	}
	k, err := NewKernels(ctx, dev, read, w.Kernels)
	if err != nil {
		return err
	}
	defer k.Close()
	known := func() {
		d.Name, d.Measured = dev.Physical.Name, time.Now().UTC().Truncate(time.Second)
		keep()
	}
	if d.DispatchNanos == 0 {
		dispatch, step, err := k.Waiting(ctx)
		if err != nil {
			return err
		}
		d.DispatchNanos, d.StepNanos = max(1, dispatch.Nanoseconds()), step.Nanoseconds()
		known()
	}
	for _, t := range d.lacks(w).Types {
		if d.Types[t.String()], err = k.products(ctx, t); err != nil {
			delete(d.Types, t.String())
			return err
		}
		known()
	}
	if _, ok := d.Attention[w.KV.String()]; !ok {
		attention, err := k.Attention(ctx, w.KV)
		if err != nil {
			return err
		}
		d.Attention[w.KV.String()] = attention
	}
	known()
	return nil
}

// products are the rates of one type.
func (k *Kernels) products(ctx context.Context, t gguf.Type) (p Products, err error) {
	if p.ReadPerSec, p.RowSeconds, err = k.ByRow(ctx, t); err == nil {
		p.Flops, err = k.Flops(ctx, t)
	}
	return p, err
}

// DeviceKey names a device, its driver, the features that are used and these kernels: what
// was measured of another says nothing.
func DeviceKey(dev *vk.Device) string {
	h := fnv.New64a()
	for _, k := range shaders.Kernels() {
		h.Write(k.SPIRV)
	}
	fmt.Fprint(h, dev.Features, dev.Transfer == dev.Compute)
	return fmt.Sprintf("%s/%#x/%016x", dev.Physical.UUID, dev.Physical.DriverVersion, h.Sum64())
}
