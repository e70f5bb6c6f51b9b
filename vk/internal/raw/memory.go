package raw

import "unsafe"

// Bool32 is VkBool32.
type Bool32 uint32

// Bool reports whether b is VK_TRUE, or any other number but VK_FALSE.
func (b Bool32) Bool() bool { return b != False }

// ToBool32 is b as C has it.
func ToBool32(b bool) Bool32 {
	if b {
		return True
	}
	return False
}

// Error returns the name in C: every Result but [Success] can be an error.
func (v Result) Error() string { return v.String() }

// CString returns a copy of s that ends with a zero byte.
func CString(s string) *byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return &b[0]
}

// GoString copies the text up to the zero byte; "" for nil.
func GoString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Bytes returns the memory of *p, for push constants and the like.
func Bytes[T any](p *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
}

// Slice returns n bytes of C's memory at p, such as mapped device memory; it is
// valid as long as C keeps it there.
func Slice(p unsafe.Pointer, n int64) []byte { return unsafe.Slice((*byte)(p), n) }
