package raw

import "unsafe"

// Ptr is p as a pNext or void* wants it, for packages without unsafe.
func Ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }
