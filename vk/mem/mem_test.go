package mem_test

import (
	"errors"
	"sync"
	"testing"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

func TestHeap(t *testing.T) {
	dev := vktest.Open(t)
	one, err := dev.BufferBytes(1<<20, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	h := mem.NewHeap(dev, "VRAM", 3*one)
	defer h.Close()
	var buffers []*vk.Buffer
	for range 3 {
		b, err := h.Alloc("a third", 1<<20, vk.DeviceLocal)
		if err != nil {
			t.Fatal(err)
		}
		buffers = append(buffers, b)
	}
	if h.Used() != 3*one || h.Peak() != 3*one || h.Budget() != 3*one {
		t.Errorf("used %d, peak %d, budget %d, want %d", h.Used(), h.Peak(), h.Budget(), 3*one)
	}
	_, err = h.Alloc("layer 17", 1, vk.DeviceLocal)
	var e *mem.BudgetError
	if !errors.As(err, &e) || e.What != "layer 17" || e.Need < 1 || e.Have != 0 {
		t.Fatalf("over budget: %v (%+v)", err, e)
	}
	h.Free(buffers[0])
	h.Free(buffers[0])
	if h.Used() != 2*one || h.Peak() != 3*one {
		t.Errorf("after Free: used %d, peak %d", h.Used(), h.Peak())
	}
	if _, err = h.Alloc("layer 18", 1<<20, vk.DeviceLocal); err != nil {
		t.Errorf("what was freed cannot be had again: %v", err)
	}
	h.SetBudget(one)
	if _, err = h.Alloc("layer 19", 1, vk.DeviceLocal); !errors.As(err, &e) || e.Have != 0 {
		t.Errorf("beyond a budget that was lowered: %v", err)
	}
	h.Close()
	h.Close()
	if h.Used() != 0 {
		t.Errorf("after Close: used %d", h.Used())
	}
	if _, err = h.Alloc("late", 1, vk.DeviceLocal); err == nil {
		t.Error("a closed heap gave memory")
	}
}

// What the driver refuses is not counted.
func TestHeapRefused(t *testing.T) {
	dev := vktest.Open(t)
	h := mem.NewHeap(dev, "VRAM", 0)
	defer h.Close()
	var e *mem.BudgetError
	_, err := h.Alloc("everything", 1<<45, vk.DeviceLocal)
	if !errors.Is(err, vk.ErrOutOfDeviceMemory) || errors.As(err, &e) {
		t.Errorf("error %v, want VK_ERROR_OUT_OF_DEVICE_MEMORY", err)
	}
	if _, err = h.Alloc("nothing", 0, vk.DeviceLocal); err == nil {
		t.Error("a buffer of no bytes was made")
	}
	if h.Used() != 0 {
		t.Errorf("used %d, want 0", h.Used())
	}
}

func TestHeapConcurrent(t *testing.T) {
	dev := vktest.Open(t)
	one, err := dev.BufferBytes(4096, vk.Upload)
	if err != nil {
		t.Fatal(err)
	}
	h := mem.NewHeap(dev, "host memory", 5*one)
	defer h.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				b, err := h.Alloc("page", 4096, vk.Upload)
				if err != nil {
					var e *mem.BudgetError
					if !errors.As(err, &e) {
						t.Error(err)
					}
					continue
				}
				h.Free(b)
			}
		})
	}
	wg.Wait()
	if h.Used() != 0 || h.Peak() > 5*one || h.Peak() < one {
		t.Errorf("used %d, peak %d of %d", h.Used(), h.Peak(), 5*one)
	}
}

func TestBudgetErrorText(t *testing.T) {
	for _, c := range []struct {
		name       string
		need, have int64
		want       string
	}{
		{"GiB", 12 << 30, 7<<30 + 100<<20, "KV cache needs 12.0 GiB of VRAM, 7.1 GiB are free"},
		{"MiB", 412 << 20, 0, "KV cache needs 412.0 MiB of VRAM, 0 B are free"},
		{"nearly", 1<<30 + 1, 1 << 30, "KV cache needs 1073741825 bytes of VRAM, 1073741824 are free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &mem.BudgetError{What: "KV cache", Heap: "VRAM", Need: c.need, Have: c.have}
			if e.Error() != c.want {
				t.Errorf("it reads %q, want %q", e.Error(), c.want)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	dev := vktest.Open(t)
	b, err := dev.NewBuffer("host", 100, vk.Upload)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := mem.Whole(b).Slice(10, 50)
	s.Ticket = 7
	s = s.Slice(5, 20)
	if s.Off != 15 || s.Bytes != 20 || s.Ticket != 7 || s.Address() != b.Address+15 {
		t.Errorf("%+v", s)
	}
	b.Mapped()[15] = 42
	if m := s.Mapped(); len(m) != 20 || cap(m) != 20 || m[0] != 42 {
		t.Errorf("mapped: %d bytes, first %d", len(m), m[0])
	}
	for _, c := range [][2]int64{{0, 21}, {21, 0}, {-1, 1}, {0, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("slice %v of 20 bytes did not panic", c)
				}
			}()
			s.Slice(c[0], c[1])
		}()
	}
}
