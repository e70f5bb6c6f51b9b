package weights

import (
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Place is VRAM for the bytes of one unit or expert: its own part of a resident block, room in the ring, or a slot.
type Place struct {
	Streamed bool   // the place is room in the ring: its reader must give it back by [Units.Release]
	After    uint64 // compute value at which the place's earlier bytes have been read: the upload of new bytes waits for it

	span    mem.Span    // the memory
	before  xfer.Ticket // uploads of the place's earlier bytes that no reader waited for: the upload of new bytes waits for them too
	ticket  xfer.Ticket // ticket of the uploads of the current bytes: a reader waits for it
	filled  bool        // the uploads of all the bytes are submitted
	awaited bool        // a reader waits for ticket
}

// Address is the device address of the bytes. Kernels may read them once the place's ticket has been waited for.
func (p *Place) Address() uint64 { return p.span.Address() }

// reuse makes a place ready for other bytes. Their uploads will wait for earlier uploads to the place that no reader has waited for.
func (p *Place) reuse() {
	p.before = xfer.Ticket{}
	if !p.awaited {
		p.before = p.ticket
	}
	p.ticket, p.filled, p.awaited = xfer.Ticket{}, false, false
}
