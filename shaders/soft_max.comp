#version 460
// soft_max: Dst = softmax(Scale · X). One workgroup per row; a lane reads and writes the same columns
// in each pass, so Dst may be X.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Rows, Cols;
    float Scale;
    uint pad0;
} a;

const float NONE = -3.0e38; // not -infinity: a driver need not honour it

void main()
{
    uint row = group();
    if (row >= a.Rows)
        return;
    uint lane = gl_LocalInvocationID.x;
    Floats x = Floats(advance(a.X, row, a.Cols * 4));
    Floats dst = Floats(advance(a.Dst, row, a.Cols * 4));

    float top = NONE;
    for (uint i = lane; i < a.Cols; i += LANES) {
        precise float s = x.f[i] * a.Scale;
        top = max(top, s);
    }
    top = max_lanes(top);
    precise float total = 0;
    for (uint i = lane; i < a.Cols; i += LANES) {
        precise float s = x.f[i] * a.Scale;
        precise float e = exp(s - top);
        total = total + e;
        dst.f[i] = e;
    }
    total = sum_lanes(total);
    for (uint i = lane; i < a.Cols; i += LANES) {
        precise float y = dst.f[i] / total;
        dst.f[i] = y;
    }
}
