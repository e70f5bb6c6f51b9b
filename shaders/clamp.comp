#version 460
// clamp: Dst = X, at least Min and at most Max. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Count;
    float Min, Max;
    uint pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    float x = Floats(a.X).f[i];
    Floats(a.Dst).f[i] = unless_nan(x, clamp(x, a.Min, a.Max));
}
