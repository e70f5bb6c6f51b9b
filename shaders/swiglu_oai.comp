#version 460
// swiglu_oai: Dst = g * sigmoid(Alpha * g) * (u + 1), g and u clamped Gate and Up: gpt-oss' gated unit. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Gate, Up, Dst;
    uint Count;
    float Alpha, Limit;
    uint pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    float gate = Floats(a.Gate).f[i], up = Floats(a.Up).f[i];
    float g = unless_nan(gate, min(gate, a.Limit)), u = unless_nan(up, clamp(up, -a.Limit, a.Limit));
    precise float turned = a.Alpha * g;
    precise float y = g / (1.0 + exp(-max(turned, -88.0))) * (u + 1.0);
    Floats(a.Dst).f[i] = y;
}
