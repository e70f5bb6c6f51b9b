// Package engine runs a language model from a GGUF file or a pack on one Vulkan
// device, also when the model is larger than the device's memory.
//
// A [Model] is the weights and the plan of where they live; goroutines may share
// it. A [Session] is a sequence of tokens and its KV cache; one goroutine owns it.
// A [Chat] keeps the messages of a conversation in a session.
// Memory is in bytes, text in tokens, shapes are written outermost first.
package engine
