#version 460
// add_id: to each row of X (Count, Cols) is added the row of Bias that IDs names, if it is one of First to Last. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Bias, IDs;
    uint Count, Cols, First, Last;
} a;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Count)
        return;
    uint id = Words(a.IDs).w[row];
    if (id < a.First || id >= a.Last)
        return;
    Floats x = Floats(advance(a.X, row, a.Cols * 4));
    precise float y = x.f[i] + Floats(advance(a.Bias, id, a.Cols * 4)).f[i];
    x.f[i] = y;
}
