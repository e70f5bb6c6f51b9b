package mem

import (
	"fmt"

	"leat/vk"
)

// hostAlign is what host memory is aligned to and a multiple of: a page on every
// system, and what direct reads want.
const hostAlign = 4096

// AllocHost makes an Upload buffer that a disk can be read into directly: memory of
// ours, imported. Where the device can't import, it is the driver's own, into which
// some drivers allow direct reads and others don't.
func (h *Heap) AllocHost(what string, bytes int64) (*vk.Buffer, error) {
	if bytes <= 0 || !h.dev.Features.HostImport {
		return h.Alloc(what, bytes, vk.Upload)
	}
	align := max(hostAlign, h.dev.Physical.Limits.HostImportAlign)
	bytes = (bytes + align - 1) / align * align
	if err := h.reserve(what, bytes); err != nil {
		return nil, err
	}
	b, free, err := h.imported(what, bytes)
	h.mu.Lock()
	if err != nil {
		h.used -= bytes
		h.mu.Unlock()
		own, ownErr := h.Alloc(what, bytes, vk.Upload)
		if ownErr != nil {
			return nil, fmt.Errorf("%w (and %w)", ownErr, err)
		}
		return own, nil
	}
	defer h.mu.Unlock()
	h.used += b.AllocBytes - bytes
	h.buffers[b] = free
	return b, nil
}

func (h *Heap) imported(what string, bytes int64) (*vk.Buffer, func(), error) {
	m, free, err := Anonymous(bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("allocate %s from %s: %w", what, h.name, err)
	}
	b, err := h.dev.ImportBuffer(what, m)
	if err != nil {
		free()
		return nil, nil, err
	}
	return b, free, nil
}
