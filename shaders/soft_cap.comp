#version 460
// soft_cap: Dst = Cap * tanh(Factor * X / Cap). One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "fine_math.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Count;
    float Factor, Cap;
    uint pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float x = a.Factor * Floats(a.X).f[i], z = x / a.Cap;
    precise float y = a.Cap * fine_tanh(z);
    Floats(a.Dst).f[i] = magnitude(x) < INFINITY ? y : x; // the cap would hide that a logit is not finite
}
