#version 460
// quantize_q8: X (Rows, Cols) in blocks of 32 signed bytes Q with a scale and two sums S. One lane per 4 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords2 { uvec2 w[]; };

layout(push_constant, std430) uniform Args {
    uvec2 X, Q, S;
    uint Rows, Cols, XStride, pad0;
} a;

const uint BLOCKS = LANES / 8; // a workgroup's
shared float largest[LANES];
shared int sums[LANES];

void main()
{
    uint blocks = a.Cols / 32, lane = gl_LocalInvocationID.x;
    uint block = group() * BLOCKS + lane / 8;
    bool there = block < a.Rows * blocks;
    uint row = block / blocks, k = block % blocks * 32 + lane % 8 * 4;
    vec4 x = vec4(0);
    if (there) {
        Floats p = Floats(advance(a.X, row, a.XStride * 4));
        x = vec4(p.f[k], p.f[k + 1], p.f[k + 2], p.f[k + 3]);
    }
    largest[lane] = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
    barrier();
    float top = 0;
    [[unroll]] for (uint i = 0; i < 8; i++)
        top = max(top, largest[lane / 8 * 8 + i]);
    precise float d = top / 127.0;
    // Clamped: a device may round the division so that the largest comes out a little above 127.
    precise vec4 scaled = d > 0 ? x / d : vec4(0);
    ivec4 q = ivec4(clamp(roundEven(scaled), -127.0, 127.0));
    sums[lane] = q.x + q.y + q.z + q.w;
    barrier();
    if (!there)
        return;
    uint bytes = (uint(q.x) & 0xff) | (uint(q.y) & 0xff) << 8 | (uint(q.z) & 0xff) << 16 | uint(q.w) << 24;
    OutWords(advance(a.Q, block, 32)).w[lane % 8] = bytes;
    if (lane % 8 == 0) {
        int first = sums[lane] + sums[lane + 1] + sums[lane + 2] + sums[lane + 3];
        int second = sums[lane + 4] + sums[lane + 5] + sums[lane + 6] + sums[lane + 7];
        OutWords2(a.S).w[block] = uvec2(floatBitsToUint(d), (uint(first) & 0xffff) | uint(second) << 16);
    }
}
