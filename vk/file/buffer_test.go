package file

import "unsafe"

// Buffer is n bytes of Go memory that takes direct reads.
func Buffer(n int64) []byte {
	b := make([]byte, n+Align)
	skip := int64(-uintptr(unsafe.Pointer(&b[0])) & (Align - 1))
	return b[skip : skip+n : skip+n]
}
