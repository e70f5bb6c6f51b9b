// The path puts the module under leat/vk, whose internal packages it has to see:
// Go goes by import paths here, not by folders.
module leat/vk/bindcmp

go 1.26.0

replace leat => ../..

require (
	github.com/goki/vulkan v1.0.8
	github.com/vulkan-go/vulkan v0.0.0-20221209234627-c0a353ae26c8
	golang.org/x/tools v0.51.0
	leat v0.0.0-00010101000000-000000000000
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
)
