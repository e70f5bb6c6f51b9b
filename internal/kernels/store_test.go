package kernels

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"leat/gguf"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk/vktest"
)

// Two processes at once keep what both found, and what is no cache of this driver is replaced, whatever it is.
func TestStore(t *testing.T) {
	dev := vktest.Open(t)
	folder := cache.Open(t.TempDir())
	key := DeviceKey(dev.Physical)
	garbage := bytes.Repeat([]byte{0x5a}, 1000)
	for _, kind := range []string{KindPipelines, KindTests, KindTunes} {
		if err := folder.Update(kind, key, func([]byte) ([]byte, error) { return garbage, nil }); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *Kernels {
		k, err := New(dev, Options{Cache: folder, Test: func(_ *Kernels, v Variant) error {
			if v.Row.Name == "flash_attn_join" {
				return errors.New("wrong")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	a, b := open(), open()
	if _, err := a.get(choice{op: "quantize_q8"}); err != nil {
		t.Error(err)
	}
	a.SaveInBackground()
	a.SaveInBackground()
	var broken *BrokenError
	if _, err := b.get(joinChoice); !errors.As(err, &broken) {
		t.Errorf("the error is %v, want a BrokenError", err)
	}
	if _, err := b.get(dequantChoice(gguf.Q4_0)); err != nil {
		t.Error(err)
	}
	b.Close()
	a.Close()
	a.Close()
	c := open()
	defer c.Close()
	results, took := c.Tested()
	var names []string
	for _, r := range results {
		names = append(names, r.Kernel)
	}
	if want := []string{"dequant_f16_q4_0", "flash_attn_join", "quantize_q8"}; !slices.Equal(names, want) || took != 0 {
		t.Errorf("the next run knows %v after %v, want %v", names, took, want)
	}
	if !c.tested.broken("flash_attn_join") || c.tested.broken("quantize_q8") {
		t.Error("what is broken is not known")
	}
	data, err := folder.Load(KindPipelines, key)
	if err != nil || dev.Physical.CheckCache(data) != nil {
		t.Errorf("kept pipelines: %d bytes, %v, %v", len(data), err, dev.Physical.CheckCache(data))
	}
}

// What was found of another build of a kernel says nothing of this one.
func TestOtherBuild(t *testing.T) {
	dev := vktest.Open(t)
	folder := cache.Open(t.TempDir())
	row, err := shaders.Find("quantize_q8", shaders.FP32)
	if err != nil {
		t.Fatal(err)
	}
	other := *row
	other.SPIRV = append(slices.Clone(row.SPIRV), 0, 0, 0, 0)
	kept := []byte(`{"` + testID(&other, nil, 0) + `": "wrong", "nothing": "wrong", "": "", "quantize_q8": "short"}`)
	if err := folder.Update(KindTests, DeviceKey(dev.Physical), func([]byte) ([]byte, error) { return kept, nil }); err != nil {
		t.Fatal(err)
	}
	k, err := New(dev, Options{Cache: folder, Test: func(*Kernels, Variant) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if results, _ := k.Tested(); len(results) != 0 || k.tested.broken("quantize_q8") {
		t.Errorf("it is believed: %v", results)
	}
}
