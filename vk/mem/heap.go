package mem

import (
	"errors"
	"fmt"
	"sync"

	"leat/vk"
)

// BudgetError says what did not fit.
type BudgetError struct {
	What       string // "layer 17", "KV cache of 32768 tokens"
	Heap       string // the name of the heap: "VRAM"
	Need, Have int64  // bytes
}

func (e *BudgetError) Error() string {
	need, have := FormatBytes(e.Need), FormatBytes(e.Have)
	if need == have { // the difference is in the digits we cut off
		need, have = fmt.Sprintf("%d bytes", e.Need), fmt.Sprintf("%d", e.Have)
	}
	return fmt.Sprintf("%s needs %s of %s, %s are free", e.What, need, e.Heap, have)
}

// FormatBytes gives "12.0 GiB", "412.0 MiB", "3.5 KiB" or "17 B".
func FormatBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// Heap makes buffers and counts what they take, to the byte, against a budget.
// It is safe for use by several goroutines.
type Heap struct {
	dev  *vk.Device
	name string

	mu         sync.Mutex
	budget     int64 // <= 0: unlimited
	used, peak int64
	buffers    map[*vk.Buffer]func() // what to call once the buffer is closed; nil: nothing
	closed     bool
}

// NewHeap makes a heap; name stands in its errors: "VRAM", "host memory". A
// budget of zero or less is no limit.
func NewHeap(dev *vk.Device, name string, budgetBytes int64) *Heap {
	return &Heap{dev: dev, name: name, budget: budgetBytes, buffers: map[*vk.Buffer]func(){}}
}

// Alloc makes a buffer of bytes, named what. The error is a *BudgetError where
// the budget forbids it, and wraps vk.ErrOutOfDeviceMemory where only the
// driver does.
func (h *Heap) Alloc(what string, bytes int64, c vk.MemoryClass) (*vk.Buffer, error) {
	need, err := h.dev.BufferBytes(bytes, c)
	if err != nil {
		return nil, fmt.Errorf("allocate %s: %w", what, err)
	}
	if err := h.reserve(what, need); err != nil {
		return nil, err
	}
	b, err := h.dev.NewBuffer(what, bytes, c) // slow: not under the lock
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.used -= need
		return nil, fmt.Errorf("allocate %s from %s: %w", what, h.name, err)
	}
	h.used += b.AllocBytes - need
	h.buffers[b] = nil
	return b, nil
}

func (h *Heap) reserve(what string, need int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("allocate %s: %s is closed: %w", what, h.name, errClosed)
	}
	if have := h.budget - h.used; h.budget > 0 && need > have {
		return &BudgetError{What: what, Heap: h.name, Need: need, Have: max(0, have)}
	}
	h.used += need
	h.peak = max(h.peak, h.used)
	return nil
}

var errClosed = errors.New("heap closed")

// Free frees b, which the device must be done with. Freeing twice is no harm.
func (h *Heap) Free(b *vk.Buffer) {
	h.mu.Lock()
	after, ours := h.buffers[b]
	if ours {
		delete(h.buffers, b)
		h.used -= b.AllocBytes
	}
	h.mu.Unlock()
	if ours {
		closeBuffer(b, after)
	}
}

func closeBuffer(b *vk.Buffer, after func()) {
	b.Close()
	if after != nil {
		after()
	}
}

// Used is what the heap's buffers take now.
func (h *Heap) Used() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// Peak is the most they have taken at one time.
func (h *Heap) Peak() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peak
}

// Budget is the limit, zero or less for none.
func (h *Heap) Budget() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.budget
}

// SetBudget changes the limit. What is in use beyond it stays until it is freed.
func (h *Heap) SetBudget(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget = bytes
}

// Close frees all buffers, which the device must be done with. It may be called twice.
func (h *Heap) Close() {
	h.mu.Lock()
	left := h.buffers
	h.buffers, h.used, h.closed = map[*vk.Buffer]func(){}, 0, true
	h.mu.Unlock()
	for b, after := range left {
		closeBuffer(b, after)
	}
}
