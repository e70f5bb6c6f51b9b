#version 460
// quantize_q8: X (Rows, Cols) in blocks of 32 signed bytes Q with a scale and two sums S. One lane per 4 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Q, S;
    uint Rows, Cols, XStride, pad0;
} a;

const uint Q8_LANES = LANES;
#include "q8.glsl"

void main()
{
    uint blocks = a.Cols / 32, lane = gl_LocalInvocationID.x;
    uint block = group() * (LANES / 8) + lane / 8;
    bool there = block < a.Rows * blocks;
    uint row = block / blocks, k = block % blocks * 32 + lane % 8 * 4;
    vec4 x = vec4(0);
    if (there) {
        Floats p = Floats(advance(a.X, row, a.XStride * 4));
        x = vec4(p.f[k], p.f[k + 1], p.f[k + 2], p.f[k + 3]);
    }
    put_q8(x, there, a.Q, a.S, block);
}
