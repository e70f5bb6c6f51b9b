#version 460
// scale: Dst = Factor * X. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Count;
    float Factor;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float y = a.Factor * Floats(a.X).f[i];
    Floats(a.Dst).f[i] = y;
}
