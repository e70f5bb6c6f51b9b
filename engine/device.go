package engine

import (
	"errors"

	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/internal/selftest"
	"leat/vk"
)

// device is an open Vulkan device and its kernels, which are tested before their first use.
type device struct {
	inst    *vk.Instance
	vk      *vk.Device
	kernels *kernels.Kernels
	lent    bool // others use it too: it stays open
}

// openDevice opens the device that o names, or takes the one that h lends.
func openDevice(o *Options, h *hooks) (*device, error) {
	if h.lend != nil {
		if lent, err := h.lend(o, h); err != nil || lent != nil {
			return lent, err
		}
	}
	d := &device{}
	if err := d.open(o, h); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *device) open(o *Options, h *hooks) (err error) {
	t := &o.Tuning
	if d.inst, err = vk.Open(vk.InstanceOptions{LoaderPath: t.VulkanLoader, Validate: t.Validate, Logger: o.Logger}); err != nil {
		return err
	}
	phys, err := d.inst.Pick(o.Device)
	if err != nil {
		return err
	}
	if d.vk, err = d.inst.NewDevice(phys, vk.DeviceOptions{OneQueue: t.OneQueue, Disable: t.Disable, Enable: t.Enable, Fault: h.fail.call}); err != nil {
		return err
	}
	if h.opened != nil {
		h.opened(d.vk)
	}
	return nil
}

// makeKernels makes the device's kernels, unless they came with it.
func (d *device) makeKernels(o *Options, h *hooks) (err error) {
	if d.kernels != nil {
		return nil
	}
	k := kernels.Options{Logger: o.Logger, Cache: cache.Open(o.CacheDir), Test: o.proveKernel, FuseRouter: h.routes, FuseRope: h.turns}
	if h.kernels != nil {
		h.kernels(&k)
	}
	d.kernels, err = kernels.New(d.vk, k)
	return err
}

// proveKernel tests a kernel before its first use on a driver.
func (o *Options) proveKernel(k *kernels.Kernels, v kernels.Variant) error {
	if o.SelfTest != nil {
		defer o.SelfTest(v.Row.Name)()
	}
	return selftest.Prove(k, v)
}

func (d *device) onCPU() bool { return d.vk.Physical.Type == vk.CPU }

// close closes what is open, unless others use it too.
func (d *device) close() error {
	if d.lent {
		return nil
	}
	var errs []error
	if d.kernels != nil {
		d.kernels.Close()
	}
	if d.vk != nil {
		errs = append(errs, d.vk.Close())
	}
	if d.inst != nil {
		errs = append(errs, d.inst.Close())
	}
	return errors.Join(errs...)
}
