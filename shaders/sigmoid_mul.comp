#version 460
// sigmoid_mul: Dst (Rows, Cols) = X * sigmoid(gate); see SigmoidMulArgs for where a gate lies. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Gate, Dst;
    uint Rows, Cols, XStride, DstStride, GateStride, Group, Jump, Step;
} a;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Rows)
        return;
    float g = Floats(advance(a.Gate, row, a.GateStride * 4)).f[i / a.Group * a.Jump + i % a.Group * a.Step];
    precise float y = Floats(advance(a.X, row, a.XStride * 4)).f[i] / (1.0 + exp(-max(g, -88.0)));
    Floats(advance(a.Dst, row, a.DstStride * 4)).f[i] = unless_nan(g, y);
}
