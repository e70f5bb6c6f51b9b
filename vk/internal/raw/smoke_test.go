package raw

import (
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
)

func logMessage(t *testing.T) MessageFunc {
	return func(s DebugUtilsMessageSeverityFlagsEXT, _ DebugUtilsMessageTypeFlagsEXT, data *DebugUtilsMessengerCallbackDataEXT) {
		if s >= DebugUtilsMessageSeverityWarningBitEXT {
			t.Errorf("Vulkan: %s", GoString(data.PMessage))
		}
	}
}

// TestFill fills a buffer on a device and reads it back, again and again while
// the collector runs.
func TestFill(t *testing.T) {
	in := newInstance(t, logMessage(t))
	d := in.newDevice(t)
	const size = 4096
	b, mem := d.hostBuffer(t, in, size)
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	defer collector.Wait()
	defer close(stop)
	for i := range uint32(30) {
		word := 0xa5000000 + i
		d.fill(t, b, size, word, uint64(i)+1)
		for off := 0; off < size; off += 4 {
			if got := binary.NativeEndian.Uint32(mem[off:]); got != word {
				t.Fatalf("round %d: word at %d is %#x, want %#x", i, off, got, word)
			}
		}
	}
	var v uint64
	must(t, "vkGetSemaphoreCounterValue", d.GetSemaphoreCounterValue(d.handle, d.timeline, &v))
	if v != 30 {
		t.Errorf("the timeline stands at %d, want 30", v)
	}
}

// TestTwoDevices: tables of two devices, each of its own instance, side by side.
func TestTwoDevices(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstance(t, logMessage(t))
			d := in.newDevice(t)
			b, mem := d.hostBuffer(t, in, 256)
			for i := range uint64(20) {
				want := uint32(d.handle) + uint32(i)
				d.fill(t, b, 256, want, i+1)
				if got := binary.NativeEndian.Uint32(mem[252:]); got != want {
					t.Errorf("round %d: the last word is %#x, want %#x", i, got, want)
				}
			}
		})
	}
}

// TestMessages sends a message through the loader to each of two messengers.
func TestMessages(t *testing.T) {
	got := make([][]string, 2)
	for i := range got {
		in := newInstance(t, func(_ DebugUtilsMessageSeverityFlagsEXT, _ DebugUtilsMessageTypeFlagsEXT, data *DebugUtilsMessengerCallbackDataEXT) {
			got[i] = append(got[i], GoString(data.PMessage))
		})
		text := []string{"one", "two"}[i]
		in.SubmitDebugUtilsMessageEXT(in.handle, DebugUtilsMessageSeverityWarningBitEXT, DebugUtilsMessageTypeValidationBitEXT,
			&DebugUtilsMessengerCallbackDataEXT{SType: StructureTypeDebugUtilsMessengerCallbackDataEXT, PMessage: CString(text), PMessageIdName: CString("test")})
		if len(got[i]) == 0 || got[i][len(got[i])-1] != text || in.messages.Load() == 0 {
			t.Errorf("messenger %d received %q, want %q last", i, got[i], text)
		}
	}
	for _, m := range got[0] {
		if m == "two" {
			t.Error("the first messenger received the second one's message")
		}
	}
}

func TestMessageCallbackClosed(t *testing.T) {
	called := false
	m := NewMessageCallback(func(DebugUtilsMessageSeverityFlagsEXT, DebugUtilsMessageTypeFlagsEXT, *DebugUtilsMessengerCallbackDataEXT) {
		called = true
	})
	m.Close()
	m.Close()
	dispatchMessage(0, 0, nil, uintptr(m.UserData()))
	if called {
		t.Error("a closed callback was called")
	}
}

// TestCommandsOfDevice: what a device of Vulkan 1.2 and more has, and what not.
func TestCommandsOfDevice(t *testing.T) {
	in := newInstance(t, logMessage(t))
	d := in.newDevice(t)
	for name, want := range map[string]bool{
		"vkCmdDispatch": true, "vkWaitSemaphores": true, "vkGetBufferDeviceAddress": true,
		"vkSetDebugUtilsObjectNameEXT": true, "vkCmdBeginDebugUtilsLabelEXT": true, // of an instance extension
		"vkGetMemoryHostPointerPropertiesEXT": false, "vkCmdPushDescriptorSetKHR": false, // extensions not enabled
	} {
		if got := d.Has(name); got != want {
			t.Errorf("Has(%q) = %v, want %v", name, got, want)
		}
	}
}
