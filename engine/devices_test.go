package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
)

// Devices are the devices that the tests of this process share: one for each way to open one, with its kernels, which are compiled
// and tested once.
type Devices struct {
	mu   sync.Mutex
	open map[deviceKey]*device
}

// deviceKey is what a device and its kernels are made by.
type deviceKey struct {
	disable, enable                   string
	oneQueue, validate, routes, turns bool
}

// Lend has o's model run on one of d, unless it could change that for others: then it opens its own.
func (d *Devices) Lend(o Setup) Setup {
	o.hooks.lend = d.lend
	return o
}

func (d *Devices) lend(o *Options, h *hooks) (*device, error) {
	if h.fail.read != nil || h.fail.call != nil || h.opened != nil || h.kernels != nil || o.SelfTest != nil || o.CacheDir != "" || o.Tuning.VulkanLoader != "" || o.Device != "" {
		return nil, nil
	}
	sorted := func(names []string) string { return fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(names)))) }
	t := &o.Tuning
	key := deviceKey{sorted(t.Disable), sorted(t.Enable), t.OneQueue, t.Validate, h.routes, h.turns}
	d.mu.Lock()
	defer d.mu.Unlock()
	if one := d.open[key]; one != nil {
		return one, nil
	}
	own, alone := *o, *h
	alone.lend, own.Logger = nil, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	one, err := openDevice(&own, &alone)
	if err != nil {
		return nil, err
	}
	if err := one.makeKernels(&own, &alone); err != nil {
		return nil, errors.Join(err, one.close())
	}
	if d.open == nil {
		d.open = map[deviceKey]*device{}
	}
	one.lent = true
	d.open[key] = one
	return one, nil
}

// Close closes them all. The error tells of what was left open, and of messages of the validation layers.
func (d *Devices) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for key, l := range d.open {
		errs = append(errs, l.vk.WaitIdle())
		l.lent = false
		errs = append(errs, l.close())
		if n := l.inst.Messages(); n > 0 {
			errs = append(errs, fmt.Errorf("device %+v: %d messages of the validation layers", key, n))
		}
	}
	d.open = nil
	return errors.Join(errs...)
}

// WithRoutes has CPUs use topk_moe_routed, and mul_mat_vec_rope.
func WithRoutes(o Setup, routes, turns bool) Setup {
	o.hooks.routes, o.hooks.turns = routes, turns
	return o
}
