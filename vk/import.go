package vk

import (
	"errors"
	"fmt"

	"leat/vk/internal/raw"
)

// ImportBuffer makes an Upload buffer of memory of ours, which must stay as it is
// until the buffer is closed. Its address and length are multiples of the device's
// Limits.HostImportAlign. Unlike the driver's own mapped memory it takes direct
// reads from a disk on every driver.
func (d *Device) ImportBuffer(what string, memory []byte) (*Buffer, error) {
	b := &Buffer{Bytes: int64(len(memory)), Class: Upload, What: what, dev: d, foreign: memory}
	err := errors.New("the device can't import host memory")
	if d.Features.HostImport {
		if err = d.importable(len(memory)); err == nil {
			err = b.make()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("import %d bytes of host memory as %q: %w", len(memory), what, err)
	}
	return b, nil
}

func (d *Device) importable(bytes int) error {
	align := d.Physical.Limits.HostImportAlign
	if bytes == 0 || align <= 0 || int64(bytes)%align != 0 {
		return fmt.Errorf("the size must be a multiple of %d above zero", align)
	}
	return nil
}

// importInto chains the import to an allocation and narrows req to what the memory allows.
func (b *Buffer) importInto(flags *raw.MemoryAllocateFlagsInfo, req *raw.MemoryRequirements) error {
	d := b.dev
	info := &raw.ImportMemoryHostPointerInfoEXT{
		SType:        raw.StructureTypeImportMemoryHostPointerInfoEXT,
		HandleType:   raw.ExternalMemoryHandleTypeHostAllocationBitEXT,
		PHostPointer: raw.Ptr(&b.foreign[0]),
	}
	props := &raw.MemoryHostPointerPropertiesEXT{SType: raw.StructureTypeMemoryHostPointerPropertiesEXT}
	r := d.fn.GetMemoryHostPointerPropertiesEXT(d.handle, info.HandleType, info.PHostPointer, props)
	if err := check("vkGetMemoryHostPointerPropertiesEXT", "", r); err != nil {
		return err
	}
	if int64(req.Size) > int64(len(b.foreign)) {
		return fmt.Errorf("the driver wants %d bytes", req.Size)
	}
	req.Size = uint64(len(b.foreign))
	req.MemoryTypeBits &= props.MemoryTypeBits
	flags.PNext = raw.Ptr(info)
	return nil
}
