#version 460
// sum_experts: Dst (Rows, Cols) = Residual + Σ over k of Weights[k] · Y (Rows, Used, Cols), in the order of the experts'
// ranks; without Weights, each is 1. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Y, Weights, Residual, Dst;
    uint Rows, Used, Cols, DstStride;
} a;

const uint AHEAD = 8;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Rows)
        return;
    bool weighed = (a.Weights.x | a.Weights.y) != 0;
    Floats weights = Floats(advance(a.Weights, row, a.Used * 4));
    precise float sum = 0;
    for (uint k = 0; k < a.Used; k += AHEAD) { // so many loads are under way at once
        float y[AHEAD], w[AHEAD];
        [[unroll]] for (uint j = 0; j < AHEAD; j++) {
            uint at = min(k + j, a.Used - 1);
            y[j] = Floats(advance(a.Y, row * a.Used + at, a.Cols * 4)).f[i];
            w[j] = weighed ? weights.f[at] : 1;
        }
        [[unroll]] for (uint j = 0; j < AHEAD; j++)
            if (k + j < a.Used)
                sum = fma(w[j], y[j], sum);
    }
    if ((a.Residual.x | a.Residual.y) != 0) {
        precise float all = Floats(advance(a.Residual, row, a.DstStride * 4)).f[i] + sum;
        sum = all;
    }
    Floats(advance(a.Dst, row, a.DstStride * 4)).f[i] = sum;
}
