#version 460
// rope: rotates pairs of X (Rows, Heads, HeadDim) in place. One lane per pair. Angles come as
// cosine and sine from the host, where frequency base, factors and YaRN live.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, CosSin;
    uint Rows, Heads, HeadDim, RopeDim, XStride, Neox;
} a;

void main()
{
    uint pairs = a.RopeDim / 2;
    uint pair = item() % pairs, head = item() / pairs % a.Heads, row = item() / pairs / a.Heads;
    if (row >= a.Rows)
        return;
    Floats x = Floats(advance(a.X, row, a.XStride * 4));
    Floats cs = Floats(advance(a.CosSin, row, pairs * 8));
    uint first = head * a.HeadDim + (a.Neox != 0 ? pair : 2 * pair);
    uint second = first + (a.Neox != 0 ? pairs : 1);

    float x0 = x.f[first], x1 = x.f[second];
    float c = cs.f[2 * pair], s = cs.f[2 * pair + 1];
    precise float y0 = x0 * c - x1 * s;
    precise float y1 = x0 * s + x1 * c;
    x.f[first] = y0;
    x.f[second] = y1;
}
