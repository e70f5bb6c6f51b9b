package raw

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// MessageFunc receives one debug-utils message. It may be called from any
// thread, also while another call of it runs; data is C's and valid only during
// the call. It must not panic and must not call Vulkan.
type MessageFunc func(severity DebugUtilsMessageSeverityFlagsEXT, types DebugUtilsMessageTypeFlagsEXT, data *DebugUtilsMessengerCallbackDataEXT)

// MessageCallback hands messages of a debug messenger to a Go function. Set
// PfnUserCallback to Func and PUserData to UserData in every
// DebugUtilsMessengerCreateInfoEXT that shall use it, and Close it after the
// instance is destroyed.
type MessageCallback struct{ handle MessageFunc }

// purego never frees a callback and has a limited number, so that one serves
// all messengers of the process and finds its target by the user data.
var (
	messageEntry = sync.OnceValue(func() uintptr { return purego.NewCallback(dispatchMessage) })
	messageMu    sync.RWMutex
	messageUsers = map[uintptr]*MessageCallback{}
)

// NewMessageCallback registers f.
func NewMessageCallback(f MessageFunc) *MessageCallback {
	m := &MessageCallback{handle: f}
	messageMu.Lock()
	defer messageMu.Unlock()
	messageUsers[uintptr(m.UserData())] = m // also keeps m where it is
	return m
}

// Func is the C function, a PFN_vkDebugUtilsMessengerCallbackEXT.
func (m *MessageCallback) Func() uintptr { return messageEntry() }

// UserData tells C's calls of m from those of others.
func (m *MessageCallback) UserData() unsafe.Pointer { return unsafe.Pointer(m) }

// Close unregisters the function; later messages are dropped. It may be called twice.
func (m *MessageCallback) Close() {
	messageMu.Lock()
	defer messageMu.Unlock()
	delete(messageUsers, uintptr(m.UserData()))
}

// dispatchMessage is called by C. Returning VK_FALSE lets the call that caused
// the message go on.
func dispatchMessage(severity, types uintptr, data *DebugUtilsMessengerCallbackDataEXT, user uintptr) uintptr {
	messageMu.RLock()
	m := messageUsers[user]
	messageMu.RUnlock()
	if m != nil {
		m.handle(DebugUtilsMessageSeverityFlagsEXT(severity), DebugUtilsMessageTypeFlagsEXT(types), data)
	}
	return uintptr(False)
}
