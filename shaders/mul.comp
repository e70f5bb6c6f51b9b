#version 460
// mul: Dst[i] = A[i] * B[i / Repeat % BCount]: a product of two activations, with a weight of every row, or of each row with a value of its own.
// One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 A, B, Dst;
    uint Count, Repeat, BCount, pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float y = Floats(a.A).f[i] * Floats(a.B).f[i / a.Repeat % a.BCount];
    Floats(a.Dst).f[i] = y;
}
