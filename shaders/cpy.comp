#version 460
// cpy: rows of Dst (Rows, Cols) = those of X, each Repeat times, strides floats apart. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Rows, Cols, XStride, DstStride, Repeat, pad0;
} a;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Rows)
        return;
    OutWords(advance(a.Dst, row, a.DstStride * 4)).w[i] = Words(advance(a.X, row / a.Repeat, a.XStride * 4)).w[i];
}
