#version 450
// dst = scale*a + b, through descriptors, as Vulkan 1.0 has it: all bindings can run it.
layout(local_size_x = 64) in;
layout(binding = 0, std430) readonly buffer A { float a[]; };
layout(binding = 1, std430) readonly buffer B { float b[]; };
layout(binding = 2, std430) writeonly buffer Dst { float dst[]; };
layout(push_constant) uniform Args { uint count; float scale; };

void main() {
	uint i = gl_GlobalInvocationID.x;
	if (i < count) {
		dst[i] = scale * a[i] + b[i];
	}
}
