// The body of the gated units: Dst[i] = act(Gate[i]) * Up[i], act from the file included before. One lane per value.

#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Gate, Up, Dst;
    uint Count, pad0;
} a;

void main()
{
    uint i = item();
    if (i >= a.Count)
        return;
    precise float y = act(Floats(a.Gate).f[i]) * Floats(a.Up).f[i];
    Floats(a.Dst).f[i] = y;
}
