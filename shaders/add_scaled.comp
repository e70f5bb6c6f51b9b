#version 460
// add_scaled: Dst = A + Factor * B, two roundings. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 A, B, Dst;
    uint Count;
    float Factor;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float y = Floats(a.A).f[i] + a.Factor * Floats(a.B).f[i];
    Floats(a.Dst).f[i] = y;
}
