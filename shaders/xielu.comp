#version 460
// xielu: a parabola for X above 0, an exponential below, each with a slope of Beta at 0; see XIELUArgs. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "fine_math.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Count;
    float AlphaP, AlphaN, Beta, Eps;
    uint pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    float x = Floats(a.X).f[i];
    precise float line = a.Beta * x;
    precise float above = a.AlphaP * x * x + line;
    precise float below = a.AlphaN * (fine_expm1(min(x, a.Eps)) - x) + line;
    Floats(a.Dst).f[i] = unless_nan(x, x > 0.0 ? above : below);
}
