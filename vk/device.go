package vk

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"leat/vk/internal/raw"
)

// DeviceOptions tells NewDevice what to leave out. The zero value uses all there is.
type DeviceOptions struct {
	OneQueue bool     // Transfer is Compute even where there is a transfer family
	Disable  []string // groups of features to do without, see Disabled
	Enable   []string // groups that are off by themselves, see Choose
	Inspect  bool     // the driver keeps what it makes of each pipeline, where it can, for Pipeline.Executables
	Fault    Fault    // tests: makes calls fail; nil: none does
}

// Fault is asked before a call and fails it with a result below zero, so that a test can
// lose a device or use up its memory at any moment. It is asked by several goroutines.
type Fault func(call string) Result

// call makes a call of Vulkan and turns its result into an error.
func (d *Device) call(name, what string, do func() Result) error {
	if d.fault != nil {
		if r := d.fault(name); r < 0 {
			return check(name, what, r)
		}
	}
	return check(name, what, do())
}

// Device is an opened device. Its methods are safe for use by several
// goroutines, unless one says otherwise.
type Device struct {
	Physical  *PhysicalDevice
	Compute   *Queue
	Transfer  *Queue   // the same as Compute where there is no transfer family
	Transfers []*Queue // Transfer, and a second one where its family has two
	Features  Features // what is turned on
	Clock     *Clock   // of the queues' timestamps

	instance *Instance
	handle   raw.Device
	fn       *raw.DeviceFuncs
	families []uint32 // the distinct families of the queues
	fault    Fault

	waits sync.Pool // of *waitBlock

	mu       sync.Mutex
	children children
}

// children are what a device has made.
type children struct {
	open   map[object]bool // nil: the device is closed
	dying  []raw.Semaphore // closed timelines, see Timeline.destroy
	closed bool
}

// object is a child of a device, which closes what was forgotten.
type object interface {
	destroy()
	label() string
}

// NewDevice opens p with its queues and with every feature we can use that
// o does not disable. The error is a *FeatureError when p cannot serve.
func (i *Instance) NewDevice(p *PhysicalDevice, o DeviceOptions) (*Device, error) {
	features, err := p.Choose(o.Disable, o.Enable)
	if err != nil {
		return nil, fmt.Errorf("open device %q: %w", p.Name, err)
	}
	compute, transfer := p.families()
	if err := p.serves(compute); err != nil {
		return nil, err
	}
	if o.OneQueue || transfer < 0 {
		transfer = compute
	}
	features.Synchronization2 = false // not used yet, so not turned on
	features.Inspect = features.Inspect && o.Inspect
	if i.layer != 0 && i.layer < coopMatrixSince {
		features.CooperativeMatrix, features.FlexibleMatrix = false, false // the layer would call it an error
	}
	features.FlexibleMatrix = features.FlexibleMatrix && (i.layer == 0 || i.layer >= flexMatrixSince)
	d := &Device{Physical: p, Features: features, instance: i, children: children{open: map[object]bool{}}, fault: o.Fault}
	d.waits.New = func() any { return new(waitBlock) }
	d.families = slices.Compact([]uint32{uint32(compute), uint32(transfer)})
	if err := d.create(); err != nil {
		return nil, fmt.Errorf("open device %q: %w", p.Name, err)
	}
	d.Compute = d.newQueue(compute, 0, "compute")
	d.Transfers = []*Queue{d.Compute}
	if transfer != compute {
		d.Transfers = d.Transfers[:0]
		for n := range d.queues(uint32(transfer)) {
			d.Transfers = append(d.Transfers, d.newQueue(transfer, n, transferNames[n]))
		}
	}
	d.Transfer = d.Transfers[0]
	d.Clock = newClock(d)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opened = append(i.opened, d)
	return d, nil
}

// transferNames are the names of the transfer queues. Two copy engines keep the
// link fuller than one while shaders run (design §10); a third brings nothing.
var transferNames = []string{"transfer", "second transfer"}

// queues is how many queues of a family we use, the first one being compute's.
func (d *Device) queues(family uint32) int {
	if family == d.families[0] {
		return 1
	}
	return min(d.Physical.QueueFamilies[family].Count, len(transferNames))
}

func (d *Device) create() error {
	priorities := []float32{1, 1}
	var queues []raw.DeviceQueueCreateInfo
	for _, f := range d.families {
		queues = append(queues, raw.DeviceQueueCreateInfo{
			SType:            raw.StructureTypeDeviceQueueCreateInfo,
			QueueFamilyIndex: f,
			QueueCount:       uint32(d.queues(f)),
			PQueuePriorities: &priorities[0],
		})
	}
	exts := d.Features.extensions(d.Physical)
	info := &raw.DeviceCreateInfo{
		SType:                raw.StructureTypeDeviceCreateInfo,
		PNext:                raw.Ptr(d.Features.enable(exts).core),
		QueueCreateInfoCount: uint32(len(queues)),
		PQueueCreateInfos:    &queues[0],
	}
	info.EnabledExtensionCount, info.PpEnabledExtensionNames = cStrings(exts)
	if err := check("vkCreateDevice", "", d.instance.fn.CreateDevice(d.Physical.handle, info, nil, &d.handle)); err != nil {
		return err
	}
	var err error
	d.fn, err = d.instance.fn.LoadDevice(d.handle)
	return err
}

// families chooses a compute family and, or -1, one that only transfers: its
// hardware copies while shaders run.
func (p *PhysicalDevice) families() (compute, transfer int) {
	compute, transfer = -1, -1
	for n, f := range p.QueueFamilies {
		if f.Count == 0 {
			continue
		}
		// A family that does not draw shares the device better with a desktop,
		// and drivers give it more time before they call it hung.
		if f.Compute && (compute < 0 || !f.Graphics && p.QueueFamilies[compute].Graphics) {
			compute = n
		}
		if f.Transfer && !f.Compute && !f.Graphics && !f.Video && !f.OpticalFlow && transfer < 0 {
			transfer = n
		}
	}
	return compute, transfer
}

// serves says what p lacks, nil for nothing.
func (p *PhysicalDevice) serves(compute int) error {
	e := &FeatureError{Device: p.Name}
	if !p.modern() {
		e.Lacks = append(e.Lacks, fmt.Sprintf("Vulkan 1.2 (it has %v)", p.APIVersion))
	} else {
		if !p.Features.BufferDeviceAddress {
			e.Lacks = append(e.Lacks, "bufferDeviceAddress")
		}
		if !p.Features.TimelineSemaphore {
			e.Lacks = append(e.Lacks, "timelineSemaphore")
		}
	}
	if compute < 0 {
		e.Lacks = append(e.Lacks, "a compute queue")
	}
	if len(e.Lacks) > 0 {
		return e
	}
	return nil
}

// WaitIdle waits until the device has done everything submitted.
func (d *Device) WaitIdle() error {
	// Vulkan wants all queues untouched meanwhile.
	d.Compute.mu.Lock()
	defer d.Compute.mu.Unlock()
	for _, q := range d.Transfers {
		if q != d.Compute {
			q.mu.Lock()
			defer q.mu.Unlock()
		}
	}
	d.mu.Lock()
	dying := d.children.dying
	d.children.dying = nil
	d.mu.Unlock()
	r := d.fn.DeviceWaitIdle(d.handle)
	err := d.call("vkDeviceWaitIdle", "", func() Result { return r }) // a test's device is not lost in truth
	for _, s := range dying {                                         // a lost device is idle too
		d.fn.DestroySemaphore(d.handle, s, nil)
	}
	return err
}

// Close waits for the device, closes what was left open, naming it in the
// error, then the device. It may be called twice.
func (d *Device) Close() error {
	d.mu.Lock()
	left, closed := d.children.open, d.children.closed
	d.children.open, d.children.closed = nil, true
	d.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	idle := func() {
		if err := d.WaitIdle(); err != nil {
			errs = append(errs, fmt.Errorf("close device %q: %w", d.Physical.Name, err))
		}
	}
	idle()
	for o := range left {
		errs = append(errs, fmt.Errorf("close device %q: %s was left open", d.Physical.Name, o.label()))
		o.destroy()
	}
	if len(left) > 0 {
		idle() // for the timelines among them
	}
	d.fn.DestroyDevice(d.handle, nil)
	i := d.instance
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opened = slices.DeleteFunc(i.opened, func(o *Device) bool { return o == d })
	return errors.Join(errs...)
}

// adopt makes o a child, so that Close finds it.
func (d *Device) adopt(o object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.children.open != nil {
		d.children.open[o] = true
	}
}

// release destroys o unless that has happened already.
func (d *Device) release(o object) {
	d.mu.Lock()
	ours := d.children.open[o]
	delete(d.children.open, o)
	d.mu.Unlock()
	if ours {
		o.destroy()
	}
}
