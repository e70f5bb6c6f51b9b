package raw

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// call is the argument list of one call in progress. Lists are pooled: passed
// as separate arguments, purego's variadic slice would be allocated each time.
type call struct {
	words [maxArgs]uintptr
	held  [maxArgs]unsafe.Pointer // forces what C sees to the heap and keeps it alive
}

var calls = sync.Pool{New: func() any { return new(call) }}

func newCall() *call { return calls.Get().(*call) }

func (c *call) ptr(i int, p unsafe.Pointer) {
	c.words[i], c.held[i] = uintptr(p), p
}

// do calls fn with the first n words and gives c back; 0 if fn is absent.
func (c *call) do(fn uintptr, n int) uintptr {
	var r uintptr
	if fn != 0 {
		r, _, _ = purego.SyscallN(fn, c.words[:n]...)
	}
	clear(c.held[:n])
	calls.Put(c)
	return r
}

// result is do for a command that returns a VkResult.
func (c *call) result(fn uintptr, n int) Result {
	r := Result(int32(c.do(fn, n))) // C leaves the upper half of the register undefined
	if fn == 0 {
		return ErrorExtensionNotPresent
	}
	return r
}
