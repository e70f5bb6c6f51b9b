package raw

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"leat/vk/dl"
)

// librarySource stands in for a driver: it keeps what it was called with.
const librarySource = `
#include <stdint.h>
uint64_t seen[16];
float seen_float;
void capture10(uint64_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, void *f, uint32_t g, void *h, uint32_t i, void *j) {
	uint64_t s[] = {a, b, c, d, e, (uint64_t)f, g, (uint64_t)h, i, (uint64_t)j};
	for (int k = 0; k < 10; k++) seen[k] = s[k];
}
void capture_float(uint64_t a, uint64_t b, float f) { seen[0] = a; seen[1] = b; seen_float = f; }
uint64_t lost(void) { return 0x5aa5a55afffffffcull; } /* rubbish above a VkResult of -4 */
uint64_t address(void) { return 0xfedcba9876543210ull; }
void write7(uint64_t a, uint64_t b, uint64_t *value) { *value = 7; }
uint64_t after_callback(void (*callback)(void), uint64_t *info) { callback(); return info[2] + ((uint64_t *)info[1])[2]; }
void nothing(void) {}
`

// buildLibrary compiles librarySource and returns the library's path.
func buildLibrary(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	src, lib := filepath.Join(dir, "driver.c"), filepath.Join(dir, "libdriver.so")
	if err := os.WriteFile(src, []byte(librarySource), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, src, "-shared", "-fPIC", "-o", lib)
	return lib
}

// symbols opens the stand-in and returns a function that finds its symbols.
func symbols(t testing.TB) func(name string) uintptr {
	t.Helper()
	lib, err := dl.Open(buildLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) uintptr {
		p, err := dl.Symbol(lib, name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// at reads C's variable at p.
func at[T any](p uintptr) T { return **(**T)(unsafe.Pointer(&p)) }

func TestArguments(t *testing.T) {
	sym := symbols(t)
	var f DeviceFuncs
	f.fn[devCmdPipelineBarrier] = sym("capture10")
	f.fn[devSetDeviceMemoryPriorityEXT] = sym("capture_float")

	m, b, i := new(MemoryBarrier), new(BufferMemoryBarrier), new(ImageMemoryBarrier)
	f.CmdPipelineBarrier(0xfedcba9876543210, 0xf0000001, 2, 3, 4, m, 5, b, 6, i)
	want := [10]uint64{0xfedcba9876543210, 0xf0000001, 2, 3, 4, uint64(uintptr(unsafe.Pointer(m))), 5,
		uint64(uintptr(unsafe.Pointer(b))), 6, uint64(uintptr(unsafe.Pointer(i)))}
	if got := at[[10]uint64](sym("seen")); got != want {
		t.Errorf("ten arguments arrive as %#x, want %#x", got, want)
	}

	f.SetDeviceMemoryPriorityEXT(0x1234, 0xfedcba9876543210, 0.625)
	if got := at[[2]uint64](sym("seen")); got != [2]uint64{0x1234, 0xfedcba9876543210} {
		t.Errorf("integers beside a float arrive as %#x", got)
	}
	if got := at[float32](sym("seen_float")); got != 0.625 {
		t.Errorf("a float arrives as %v, want 0.625", got)
	}
}

func TestResults(t *testing.T) {
	sym := symbols(t)
	var f DeviceFuncs
	f.fn[devDeviceWaitIdle] = sym("lost")
	f.fn[devGetBufferDeviceAddress] = sym("address")
	f.fn[devGetSemaphoreCounterValue] = sym("write7")
	if got := f.DeviceWaitIdle(1); got != ErrorDeviceLost {
		t.Errorf("DeviceWaitIdle = %v, want %v", got, ErrorDeviceLost)
	}
	if got := f.GetBufferDeviceAddress(1, &BufferDeviceAddressInfo{}); got != 0xfedcba9876543210 {
		t.Errorf("GetBufferDeviceAddress = %#x, want %#x", got, uint64(0xfedcba9876543210))
	}
	var v uint64
	if f.GetSemaphoreCounterValue(1, 2, &v); v != 7 {
		t.Errorf("what C wrote through a pointer reads %d, want 7", v)
	}
}

// TestPointersLive: what C sees stays where it is and alive while a call runs,
// though C calls back into Go, the stack grows and the collector works.
func TestPointersLive(t *testing.T) {
	var f DeviceFuncs
	f.fn[devGetBufferDeviceAddress] = symbols(t)("after_callback")
	callback := purego.NewCallback(func() uintptr {
		churn(100)
		return 0
	})
	for range 10 {
		done := make(chan uint64)
		go func() { // a new goroutine: its stack is small
			done <- f.GetBufferDeviceAddress(Device(callback), &BufferDeviceAddressInfo{
				PNext: unsafe.Pointer(&BufferDeviceAddressInfo{Buffer: 1000}), Buffer: 234})
		}()
		if got := <-done; got != 1234 {
			t.Fatalf("C read %d after the callback, want 1234", got)
		}
	}
}

// churn moves the stack, frees what nobody holds, and uses that memory again.
func churn(depth int) byte {
	var frame [1024]byte
	frame[depth] = 1
	if depth > 0 {
		return frame[depth] + churn(depth-1)
	}
	runtime.GC()
	for range 10000 {
		garbage = &BufferDeviceAddressInfo{SType: -1, Buffer: 0xbad}
	}
	return frame[0]
}

var garbage *BufferDeviceAddressInfo

func TestAbsentCommands(t *testing.T) {
	var f DeviceFuncs
	if got := f.QueueSubmit2(1, 0, nil, 0); got != ErrorExtensionNotPresent {
		t.Errorf("absent QueueSubmit2 = %v, want %v", got, ErrorExtensionNotPresent)
	}
	f.CmdPipelineBarrier2(1, &DependencyInfo{})
	f.SetDeviceMemoryPriorityEXT(1, 2, 0.5)
	if f.Has("vkQueueSubmit2") {
		t.Error("Has(vkQueueSubmit2) of an empty table")
	}
}

// hotCalls are the calls of every dispatch and submission; no struct among
// their arguments is made in the call.
func hotCalls(f *DeviceFuncs) map[string]func() {
	var (
		push    = new([64]byte)
		barrier = &MemoryBarrier{SType: StructureTypeMemoryBarrier}
		region  = &BufferCopy{Size: 4}
		submit  = &SubmitInfo{SType: StructureTypeSubmitInfo}
		wait    = &SemaphoreWaitInfo{SType: StructureTypeSemaphoreWaitInfo}
	)
	return map[string]func(){
		"CmdBindPipeline":    func() { f.CmdBindPipeline(1, PipelineBindPointCompute, 2) },
		"CmdPushConstants":   func() { f.CmdPushConstants(1, 2, ShaderStageComputeBit, 0, 64, unsafe.Pointer(push)) },
		"CmdDispatch":        func() { f.CmdDispatch(1, 2, 3, 4) },
		"CmdPipelineBarrier": func() { f.CmdPipelineBarrier(1, 2, 3, 0, 1, barrier, 0, nil, 0, nil) },
		"CmdCopyBuffer":      func() { f.CmdCopyBuffer(1, 2, 3, 1, region) },
		"CmdFillBuffer":      func() { f.CmdFillBuffer(1, 2, 0, 4, 5) },
		"QueueSubmit":        func() { f.QueueSubmit(1, 1, submit, 0) },
		"WaitSemaphores":     func() { f.WaitSemaphores(1, wait, 0) },
	}
}

// idleTable is a table whose every command does nothing.
func idleTable(sym func(string) uintptr) *DeviceFuncs {
	f := &DeviceFuncs{}
	for i := range f.fn {
		f.fn[i] = sym("nothing")
	}
	return f
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops entries at random under the race detector")
	}
	for name, f := range hotCalls(idleTable(symbols(t))) {
		if n := testing.AllocsPerRun(500, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	calls := hotCalls(idleTable(symbols(b)))
	for _, name := range []string{"CmdDispatch", "CmdPipelineBarrier"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				calls[name]()
			}
		})
	}
}
