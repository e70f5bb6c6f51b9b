#version 460
// rms_norm: Dst = X / sqrt(mean(X²) + Eps) * W. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Dst;
    uint Rows, Cols, XStride, DstStride;
    float Eps;
    uint pad0;
} a;

void main()
{
    uint row = group();
    if (row >= a.Rows)
        return;
    uint lane = gl_LocalInvocationID.x;
    Floats x = Floats(advance(a.X, row, a.XStride * 4));
    Floats w = Floats(a.W);
    Floats dst = Floats(advance(a.Dst, row, a.DstStride * 4));

    precise float squares = 0;
    for (uint i = lane; i < a.Cols; i += LANES)
        squares = fma(x.f[i], x.f[i], squares);
    // Not inversesqrt: its precision is the driver's choice.
    precise float mean = sum_lanes(squares) / float(a.Cols);
    precise float scale = 1.0 / sqrt(mean + a.Eps);
    for (uint i = lane; i < a.Cols; i += LANES) {
        precise float y = x.f[i] * scale * w.f[i];
        dst.f[i] = y;
    }
}
