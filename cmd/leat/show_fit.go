package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/predict/gpus"
	"leat/shaders"
	"leat/vk"
	"leat/vk/mem"
)

// modelMemory are the flags that say which memory a model has.
type modelMemory struct {
	vram, ram sizeFlag
	gpu       string
}

func (f *modelMemory) register(fs *pflag.FlagSet) {
	fs.Var(&f.vram, "vram", "VRAM to use at most, as 6GiB (default: what is free, less a reserve)")
	fs.Var(&f.ram, "ram", "RAM to use at most for weights that don't fit into VRAM (default: what is available, less a reserve)")
	fs.StringVar(&f.gpu, "gpu", "", "judge by this GPU instead, by any part of its name; \"leat plan --gpu list\" names those known")
}

// fitReport says whether a model fits.
type fitReport struct {
	Device  string `json:"device,omitempty"`
	VRAM    int64  `json:"vram_bytes"` // for weights and KV cache; 0: not known
	RAM     int64  `json:"ram_bytes"`  // for weights that have no room in VRAM
	KVBytes int64  `json:"kv_bytes_per_token"`
	KVType  string `json:"kv_type"` // of the KV cache without options
	Text    string `json:"text"`
}

// kvBytes is what a token takes in a KV cache of type t.
func kvBytes(h *arch.Hyper, t gguf.Type) (n int64) {
	for l := range h.Layers {
		if s := &h.Layers[l]; s.Cache {
			n += int64(s.HeadCountKV) * (shaders.KVRowBytes(t, s.KeyLength) + shaders.KVRowBytes(t, s.ValueLength))
		}
	}
	return n
}

// judge says whether the model fits. It opens no device: leat plan does, and tells the speed.
func (f *modelMemory) judge(a *app, r *showReport, m *pack.Model) error {
	on, err := f.machine(a, &r.Fit)
	if err != nil {
		return err
	}
	request := budget.Request{DeviceBytes: int64(f.vram), HostBytes: int64(f.ram)}
	b := request.Budget(&on, nil, m)
	if b.DeviceBytes < 0 || on.FreeBytes == 0 && f.vram == 0 {
		b.DeviceBytes = 0
	}
	r.Fit.VRAM, r.Fit.RAM = b.DeviceBytes, b.HostBytes
	r.Fit.Text = r.fit()
	return nil
}

// machine is the machine that the flags mean. Without a device its VRAM is 0.
func (f *modelMemory) machine(a *app, r *fitReport) (budget.Machine, error) {
	if f.gpu != "" {
		g, err := gpus.Find(f.gpu)
		if err != nil {
			var missing *gpus.NotFoundError
			errors.As(err, &missing)
			return budget.Machine{}, &usageError{text: "--gpu: " + err.Error(), hint: missing.Hint()}
		}
		r.Device = g.Name
		return budget.OfGPU(&g, int64(f.ram)), nil
	}
	var on budget.Machine
	_, on.AvailableBytes, _ = mem.RAM() // 0: not known
	if f.vram > 0 {
		return on, nil
	}
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		return on, nil
	}
	defer instance.Close()
	if p, err := instance.Pick(""); err == nil {
		r.Device, on.FreeBytes, on.UMA, on.CPU = p.Name, p.FreeBytes(), p.Features.UMA, p.Type == vk.CPU
	}
	return on, nil
}

// fit is a sentence: where there is room for the weights. Beside them, a context takes memory, and every step some.
func (r *showReport) fit() string {
	vram, ram, n := r.Fit.VRAM, r.Fit.RAM, r.Bytes
	rest := "leat plan says how fast it runs"
	switch {
	case vram == 0:
		return fmt.Sprintf("No GPU is found here, and %s of weights need one: --vram and --gpu judge by another machine's", formatSize(n))
	case n+r.leastContext() <= vram:
		return fmt.Sprintf("It fits: %s of weights in %s of VRAM", formatSize(n), formatSize(vram))
	case n <= vram+ram:
		return fmt.Sprintf("Not all of it fits: of %s of weights, %s have room in VRAM, and the rest in RAM; %s", formatSize(n), formatSize(vram), rest)
	}
	return fmt.Sprintf("Not all of it fits: of %s of weights, %s have room in VRAM, %s in RAM, and %s stay on disk; %s", formatSize(n), formatSize(vram), formatSize(ram), formatSize(n-vram-ram), rest)
}

// leastContext is the KV cache of a short conversation.
func (r *showReport) leastContext() int64 {
	const tokens = 4096
	return r.Fit.KVBytes * min(tokens, max(1, r.Shape.Context))
}
