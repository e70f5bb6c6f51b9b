// The body of activation functions without a gate: Dst[i] = act(X[i]), act from the file included before. One lane per value.

#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Count, pad0;
} a;

void main()
{
    uint i = item();
    if (i < a.Count)
        Floats(a.Dst).f[i] = act(Floats(a.X).f[i]);
}
