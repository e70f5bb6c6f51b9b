package probe

import (
	_ "embed"
	"encoding/binary"
	"math"
)

//go:generate glslc --target-env=vulkan1.0 -O -o add.spv add.comp

//go:generate glslc --target-env=vulkan1.0 -O -o nothing.spv nothing.comp

//go:embed add.spv
var spirv []byte

// NothingSPIRV is a shader that does nothing.
//
//go:embed nothing.spv
var NothingSPIRV []byte

// The kernel's buffers lie one after another in one allocation.
const (
	Count       = 1000 // floats in each buffer: not a multiple of the workgroup
	Groups      = (Count + 63) / 64
	BufferBytes = 4096 // from one to the next: keeps every offset alignment
	TotalBytes  = 3 * BufferBytes
)

// Args are the kernel's push constants.
type Args struct {
	Count uint32
	Scale float32
}

// ArgsBytes is the size of Args.
const ArgsBytes = 8

// KernelArgs is what the kernel is called with.
var KernelArgs = Args{Count: Count, Scale: 3}

// Code is the kernel as Vulkan wants it.
func Code() []uint32 {
	words := make([]uint32, len(spirv)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(spirv[4*i:])
	}
	return words
}

// Fill writes the inputs into the mapped buffers, (3, BufferBytes/4). Every
// number is small enough that the result is exact, fused or not.
func Fill(words []uint32) {
	clear(words)
	for i := range Count {
		words[i] = math.Float32bits(float32(i) / 8)
		words[BufferBytes/4+i] = math.Float32bits(float32(i * i % 1021))
	}
}

// Output copies the result out of the mapped buffers.
func Output(words []uint32) []uint32 {
	return append([]uint32(nil), words[2*BufferBytes/4:][:Count]...)
}

// Want is the result as Go has it.
func Want() []uint32 {
	want := make([]uint32, Count)
	for i := range want {
		want[i] = math.Float32bits(KernelArgs.Scale*(float32(i)/8) + float32(i*i%1021))
	}
	return want
}
