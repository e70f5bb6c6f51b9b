#version 460
// pair_scale: Dst (Rows, Used, Cols) = X (Rows, Cols), times each of the row's Weights (Rows, Used). One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Weights, Dst;
    uint Rows, Used, Cols, pad0;
} a;

void main()
{
    uint pair = item() / a.Cols, i = item() % a.Cols;
    if (pair >= a.Rows * a.Used)
        return;
    precise float y = Floats(a.Weights).f[pair] * Floats(advance(a.X, pair / a.Used, a.Cols * 4)).f[i];
    Floats(advance(a.Dst, pair, a.Cols * 4)).f[i] = y;
}
