package mem_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"leat/vk"
	"leat/vk/mem"
	"leat/vk/vktest"
)

// Host memory can be read into directly, is counted, and goes with its buffer.
func TestAllocHost(t *testing.T) {
	for _, imports := range []bool{true, false} {
		t.Run(fmt.Sprintf("import %v", imports), func(t *testing.T) { testAllocHost(t, imports) })
	}
}

func testAllocHost(t *testing.T, imports bool) {
	dev := vktest.Open(t)
	dev.Features.HostImport = dev.Features.HostImport && imports
	h := mem.NewHeap(dev, "host memory", 1<<20)
	defer h.Close()
	b, err := h.AllocHost("staging", 5000)
	if err != nil {
		t.Fatal(err)
	}
	m := b.Mapped()
	if len(m) < 5000 || h.Used() != b.AllocBytes || b.Class != vk.Upload || b.Address == 0 {
		t.Errorf("%d bytes mapped, %d counted, %d taken, class %v, address %#x", len(m), h.Used(), b.AllocBytes, b.Class, b.Address)
	}
	if dev.Features.HostImport && uintptr(unsafe.Pointer(&m[0]))%4096 != 0 {
		t.Errorf("memory at %p, wanted a page's beginning", &m[0])
	}
	clear(m)
	m[len(m)-1] = 1
	var e *mem.BudgetError
	if _, err := h.AllocHost("too much", 1<<20); !errors.As(err, &e) {
		t.Errorf("over budget: %v", err)
	}
	h.Free(b)
	if h.Used() != 0 {
		t.Errorf("after Free: %d bytes in use", h.Used())
	}
	if _, err := h.AllocHost("nothing", 0); err == nil {
		t.Error("a buffer of no bytes was made")
	}
}

// Only whole pages can be imported.
func TestImportBuffer(t *testing.T) {
	dev := vktest.Open(t)
	if !dev.Features.HostImport {
		t.Skip("the device can't import host memory")
	}
	for _, n := range []int{0, 100} {
		if b, err := dev.ImportBuffer("odd", make([]byte, n)); err == nil {
			b.Close()
			t.Errorf("%d bytes were imported", n)
		}
	}
}
