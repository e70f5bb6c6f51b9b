package vk_test

import (
	"errors"
	"testing"

	"leat/vk"
	"leat/vk/vktest"
)

// What one cache compiled another has from its data, alone or merged with more.
func TestPipelineCache(t *testing.T) {
	dev := vktest.Open(t)
	fill := func(c *vk.PipelineCache, spec ...uint32) {
		o := probeOptions
		o.Spec, o.Cache = spec, c
		p, err := dev.NewPipeline(o)
		if err != nil {
			t.Fatal(err)
		}
		p.Close()
	}
	open := func(data []byte) *vk.PipelineCache {
		c, err := dev.NewPipelineCache(data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	data := func(c *vk.PipelineCache) []byte {
		b, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := open(nil), open(nil)
	empty := len(data(a))
	fill(a, 32, 3, 7)
	fill(b, 32, 5, 9)
	one := data(a)
	keeps := len(one) > empty // lavapipe's caches stay empty: Mesa has one of its own
	t.Logf("%d bytes, empty %d", len(one), empty)
	if err := dev.Physical.CheckCache(one); err != nil {
		t.Error(err)
	}
	if got := data(open(one)); len(got) < len(one) {
		t.Errorf("a cache made of %d bytes holds %d", len(one), len(got))
	}
	if err := a.Merge(data(b)); err != nil {
		t.Fatal(err)
	}
	if got := data(a); len(got) < len(one) || keeps && len(got) == len(one) {
		t.Errorf("a merged cache holds %d bytes, one of the two %d", len(got), len(one))
	}
	a.Close()
	a.Close()
}

// Data of another device or driver never reaches the driver.
func TestForeignPipelineCache(t *testing.T) {
	dev := vktest.Open(t)
	c, err := dev.NewPipelineCache(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good, err := c.Data()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int{"header length": 0, "version": 4, "vendor": 8, "device": 12, "driver": 16, "driver's end": 31} {
		t.Run(name, func(t *testing.T) {
			bad := append([]byte(nil), good...)
			bad[at] ^= 1
			foreign(t, dev, bad)
		})
	}
	t.Run("short", func(t *testing.T) { foreign(t, dev, good[:31]) })
}

func foreign(t *testing.T, dev *vk.Device, data []byte) {
	t.Helper()
	c, err := dev.NewPipelineCache(data)
	var wrong *vk.CacheError
	if !errors.As(err, &wrong) {
		t.Errorf("the error is %v, want a CacheError", err)
	}
	if c != nil {
		c.Close()
	}
}
