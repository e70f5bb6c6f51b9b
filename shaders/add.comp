#version 460
// add: Dst[i] = A[i] + B[i % BCols]: a residual, or a bias on every row. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 A, B, Dst;
    uint Count, BCols;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float y = Floats(a.A).f[i] + Floats(a.B).f[i % a.BCols];
    Floats(a.Dst).f[i] = y;
}
