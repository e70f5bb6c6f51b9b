package engine

import (
	"context"
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
	open map[deviceKey]*lent
}

// deviceKey is what a device and its kernels are made by.
type deviceKey struct {
	disable, enable                   string
	oneQueue, validate, routes, turns bool
}

// Lend has o's model run on one of d, unless it could change that for others: then it opens its own.
func (d *Devices) Lend(o Options) Options {
	o.lend = d.lend
	return o
}

func (d *Devices) lend(o *Options) (*lent, error) {
	if o.fault != nil || o.device != nil || o.opened != nil || o.kernels != nil || o.SelfTest != nil || o.CacheDir != "" || o.VulkanLoader != "" || o.Device != "" {
		return nil, nil
	}
	sorted := func(names []string) string { return fmt.Sprint(slices.Compact(slices.Sorted(slices.Values(names)))) }
	key := deviceKey{sorted(o.Disable), sorted(o.Enable), o.OneQueue, o.Validate, o.routes, o.turns}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.open[key]; l != nil {
		return l, nil
	}
	own := Model{o: *o}
	own.o.lend, own.o.Logger = nil, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	err := own.openDevice(context.Background(), "")
	if err == nil {
		own.kernels, err = own.o.newKernels(own.dev)
	}
	if err != nil {
		own.live()
		return nil, errors.Join(err, own.Close())
	}
	if d.open == nil {
		d.open = map[deviceKey]*lent{}
	}
	d.open[key] = &lent{own.inst, own.dev, own.kernels}
	return d.open[key], nil
}

// Close closes them all. The error tells of what was left open, and of messages of the validation layers.
func (d *Devices) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for key, l := range d.open {
		errs = append(errs, l.dev.WaitIdle())
		l.kernels.Close()
		errs = append(errs, l.dev.Close(), l.inst.Close())
		if n := l.inst.Messages(); n > 0 {
			errs = append(errs, fmt.Errorf("device %+v: %d messages of the validation layers", key, n))
		}
	}
	d.open = nil
	return errors.Join(errs...)
}

// WithRoutes has CPUs use topk_moe_routed, and mul_mat_vec_rope.
func WithRoutes(o Options, routes, turns bool) Options {
	o.routes, o.turns = routes, turns
	return o
}
