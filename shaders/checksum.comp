#version 460
// checksum: Dst[g] = xor of all words of piece g of Src. Nothing but 16-byte loads: what it reads in a second is the
// ceiling that the other kernels are measured against.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Src, Dst;
    uint Count, pad0;
} a;

const uint LOADS = 16;
shared uint words[LANES];

void main()
{
    uint lane = gl_LocalInvocationID.x, first = group() * LANES * LOADS;
    if (first >= a.Count)
        return;
    Words4 src = Words4(advance(a.Src, group(), LANES * LOADS * 16));
    uvec4 v = uvec4(0);
    if (a.Count - first >= LANES * LOADS) {
        [[unroll]] for (uint i = 0; i < LOADS; i++)
            v ^= src.w[lane + i * LANES];
    } else {
        for (uint i = lane; i < a.Count - first; i += LANES)
            v ^= src.w[i];
    }
    words[lane] = v.x ^ v.y ^ v.z ^ v.w;
    barrier();
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        if (lane < s)
            words[lane] ^= words[lane + s];
        barrier();
    }
    if (lane == 0)
        OutWords(a.Dst).w[group()] = words[0];
}
