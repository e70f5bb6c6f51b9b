#version 450
#extension GL_EXT_buffer_reference : require

// Writes out[i] = i * factor + offset for i < count, through a bare address.
// The local size and two numbers are specialisation constants.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint factor = 1;
layout(constant_id = 2) const uint bias = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };

layout(push_constant) uniform Args {
    Words dst;
    uint count;
    uint offset;
} args;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < args.count) {
        args.dst.w[i] = i * factor + bias + args.offset;
    }
}
