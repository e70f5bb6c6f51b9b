package vk

import (
	"context"
	"log/slog"

	"leat/vk/internal/raw"
)

// BeginLabel opens a named range, for validation messages and tools.
func (c *CommandBuffer) BeginLabel(name string) {
	if c.queue.dev.instance.debug && c.ok() {
		c.fn.CmdBeginDebugUtilsLabelEXT(c.handle, &raw.DebugUtilsLabelEXT{
			SType:      raw.StructureTypeDebugUtilsLabelEXT,
			PLabelName: raw.CString(name),
		})
	}
}

// EndLabel closes the range opened last.
func (c *CommandBuffer) EndLabel() {
	if c.queue.dev.instance.debug && c.ok() {
		c.fn.CmdEndDebugUtilsLabelEXT(c.handle)
	}
}

// messengerInfo asks for warnings and errors.
func (i *Instance) messengerInfo() *raw.DebugUtilsMessengerCreateInfoEXT {
	return &raw.DebugUtilsMessengerCreateInfoEXT{
		SType:           raw.StructureTypeDebugUtilsMessengerCreateInfoEXT,
		MessageSeverity: raw.DebugUtilsMessageSeverityWarningBitEXT | raw.DebugUtilsMessageSeverityErrorBitEXT,
		MessageType:     raw.DebugUtilsMessageTypeGeneralBitEXT | validationTypes,
		PfnUserCallback: i.callback.Func(),
		PUserData:       i.callback.UserData(),
	}
}

// validationTypes are the messages about what we do; the others are about the
// installation, such as a driver that does not load.
const validationTypes = raw.DebugUtilsMessageTypeValidationBitEXT | raw.DebugUtilsMessageTypePerformanceBitEXT

// hear logs one message; it is called from any thread.
func (i *Instance) hear(severity raw.DebugUtilsMessageSeverityFlagsEXT, types raw.DebugUtilsMessageTypeFlagsEXT, m *raw.DebugUtilsMessengerCallbackDataEXT) {
	level := slog.LevelWarn
	if severity&raw.DebugUtilsMessageSeverityErrorBitEXT != 0 {
		level = slog.LevelError
	}
	if types&validationTypes != 0 {
		i.messages.Add(1)
	}
	// The text names the objects itself.
	i.log.LogAttrs(context.Background(), level, "vulkan: "+raw.GoString(m.PMessage), slog.String("id", raw.GoString(m.PMessageIdName)))
}

// nameObject gives a handle a name for validation messages and tools.
func (d *Device) nameObject(t raw.ObjectType, handle uint64, name string) {
	if d.instance.debug && name != "" {
		d.fn.SetDebugUtilsObjectNameEXT(d.handle, &raw.DebugUtilsObjectNameInfoEXT{
			SType:        raw.StructureTypeDebugUtilsObjectNameInfoEXT,
			ObjectType:   t,
			ObjectHandle: handle,
			PObjectName:  raw.CString(name),
		})
	}
}
