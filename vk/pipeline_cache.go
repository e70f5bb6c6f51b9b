package vk

import (
	"encoding/binary"
	"fmt"
	"sync"

	"leat/vk/internal/raw"
)

// PipelineCache holds what a driver compiled, for pipelines made with it. Goroutines may share it.
type PipelineCache struct {
	dev    *Device
	handle raw.PipelineCache
	mu     sync.RWMutex // held for reading while pipelines are made with it
}

// cacheHeader is the length of what Vulkan demands at the start of a cache's data: the length, the version 1, vendor and
// device, and the driver's UUID.
const cacheHeader = 16 + raw.UuidSize

// CacheError says why data is no pipeline cache of a device.
type CacheError struct {
	Device, What string
	Found, Want  any
}

func (e *CacheError) Error() string {
	return fmt.Sprintf("read pipeline cache of %s: %s is %v, want %v", e.Device, e.What, e.Found, e.Want)
}

// CheckCache compares the header of a cache's data with the device and its driver: drivers differ in how well they do.
// The error is a [*CacheError]. What follows the header is the driver's own: keep it under a checksum.
func (p *PhysicalDevice) CheckCache(data []byte) error {
	if len(data) < cacheHeader {
		return &CacheError{p.Name, "its length", len(data), fmt.Sprintf("at least %d", cacheHeader)}
	}
	for i, f := range []struct {
		what string
		want uint32
	}{{"the length of its header", cacheHeader}, {"its version", 1}, {"the vendor", p.VendorID}, {"the device", p.DeviceID}} {
		if n := binary.LittleEndian.Uint32(data[4*i:]); n != f.want {
			return &CacheError{p.Name, f.what, n, f.want}
		}
	}
	if id := [raw.UuidSize]byte(data[16:]); id != p.CacheUUID {
		return &CacheError{p.Name, "the driver's UUID", fmt.Sprintf("%x", id), fmt.Sprintf("%x", p.CacheUUID)}
	}
	return nil
}

// NewPipelineCache makes a cache that holds what data does, nil for nothing. The error is a [*CacheError] where data is
// of another device or driver.
func (d *Device) NewPipelineCache(data []byte) (*PipelineCache, error) {
	c := &PipelineCache{dev: d}
	if len(data) > 0 {
		if err := d.Physical.CheckCache(data); err != nil {
			return nil, err
		}
	}
	info := &raw.PipelineCacheCreateInfo{SType: raw.StructureTypePipelineCacheCreateInfo, InitialDataSize: uintptr(len(data))}
	if len(data) > 0 {
		info.PInitialData = raw.Ptr(&data[0])
	}
	err := d.call("vkCreatePipelineCache", "", func() Result { return d.fn.CreatePipelineCache(d.handle, info, nil, &c.handle) })
	if err != nil {
		return nil, fmt.Errorf("make pipeline cache: %w", err)
	}
	d.adopt(c)
	return c, nil
}

// Merge adds what data holds, which is that of another cache of this device and driver.
func (c *PipelineCache) Merge(data []byte) error {
	other, err := c.dev.NewPipelineCache(data)
	if err != nil {
		return err
	}
	defer other.Close()
	d := c.dev
	c.mu.Lock() // Vulkan wants the one that grows untouched meanwhile
	defer c.mu.Unlock()
	return d.call("vkMergePipelineCaches", "", func() Result { return d.fn.MergePipelineCaches(d.handle, c.handle, 1, &other.handle) })
}

// Data returns all that the cache holds, for another run's NewPipelineCache.
func (c *PipelineCache) Data() ([]byte, error) {
	for range 8 { // it may grow between the two calls
		size, _, err := c.get(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		data := make([]byte, size)
		n, whole, err := c.get(data)
		if err != nil {
			return nil, err
		}
		if whole {
			return data[:n], nil
		}
	}
	return nil, fmt.Errorf("read pipeline cache of %s: it grows faster than it can be read", c.dev.Physical.Name)
}

// get fills data, or says how large it must be.
func (c *PipelineCache) get(data []byte) (size uintptr, whole bool, err error) {
	d := c.dev
	p := raw.Ptr((*byte)(nil))
	if size = uintptr(len(data)); size > 0 {
		p = raw.Ptr(&data[0])
	}
	result := raw.Success
	err = d.call("vkGetPipelineCacheData", "", func() Result {
		result = d.fn.GetPipelineCacheData(d.handle, c.handle, &size, p)
		return result
	})
	return size, result == raw.Success, err
}

// Close frees the cache; pipelines made with it stay. It may be called twice.
func (c *PipelineCache) Close() { c.dev.release(c) }

func (c *PipelineCache) label() string { return "a pipeline cache" }

func (c *PipelineCache) destroy() { c.dev.fn.DestroyPipelineCache(c.dev.handle, c.handle, nil) }
