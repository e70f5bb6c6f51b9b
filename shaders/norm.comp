#version 460
// norm: Dst = (X - mean(X)) / sqrt(var(X) + Eps) * W + B; see NormArgs for which weights a row has. The variance is the mean of (X - mean(X))²: the difference of
// mean(X²) and mean(X)² would lose its digits where the mean is large. A row has ROW_LANES of a workgroup's lanes, each takes every ROW_LANES-th run of
// 4 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "row_sum.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, W, B, Dst;
    uint Rows, Cols, XStride, DstStride;
    float Eps;
    uint Heads;
} a;

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFloats4 { vec4 f[]; };

bool given(uvec2 address) { return (address.x | address.y) != 0; }

// run4 is a run of a row less shift, 0 where the row has ended.
vec4 run4(uvec2 x, uint i, bool whole, float shift)
{
    precise vec4 v = vec4(0);
    if (whole) {
        v = Floats4(x).f[i] - shift;
        return v;
    }
    [[unroll]] for (uint k = 0; k < 4; k++)
        if (4 * i + k < a.Cols)
            v[k] = Floats(x).f[4 * i + k] - shift;
    return v;
}

float sum4(vec4 v)
{
    precise float sum = (v.x + v.y) + (v.z + v.w);
    return sum;
}

void main()
{
    uint row = group() * (LANES / ROW_LANES) + gl_LocalInvocationID.x / ROW_LANES;
    bool there = row < a.Rows; // all lanes meet in the sums
    uint lane = gl_LocalInvocationID.x % ROW_LANES, runs = there ? (a.Cols + 3) / 4 : 0;
    bool whole = ((a.Cols | a.XStride | a.DstStride) & 3) == 0; // rows are of 16-byte runs
    uvec2 x = advance(a.X, row, a.XStride * 4), dst = advance(a.Dst, row, a.DstStride * 4);

    precise vec4 sums = vec4(0), squares = vec4(0);
    for (uint i = lane; i < runs; i += ROW_LANES)
        sums += run4(x, i, whole, 0);
    precise float mean = sum_row(sum4(sums)) / float(a.Cols);
    barrier();
    for (uint i = lane; i < runs; i += ROW_LANES) {
        vec4 v = run4(x, i, whole, mean);
        squares = fma(v, v, squares);
    }
    precise float var = sum_row(sum4(squares)) / float(a.Cols);
    precise float scale = 1.0 / sqrt(var + a.Eps); // not inversesqrt: its precision is the driver's choice
    if (!there)
        return;
    bool weighted = given(a.W), biased = given(a.B);
    uvec2 w = advance(a.W, row % a.Heads, a.Cols * 4), b = advance(a.B, row % a.Heads, a.Cols * 4);
    if (whole) {
        for (uint i = lane; i < runs; i += ROW_LANES) {
            precise vec4 y = run4(x, i, true, mean) * scale;
            if (weighted)
                y *= Floats4(w).f[i];
            if (biased)
                y += Floats4(b).f[i];
            OutFloats4(dst).f[i] = y;
        }
        return;
    }
    for (uint i = lane; i < a.Cols; i += ROW_LANES) {
        precise float y = (Floats(x).f[i] - mean) * scale;
        if (weighted)
            y *= Floats(w).f[i];
        if (biased)
            y += Floats(b).f[i];
        Floats(dst).f[i] = y;
    }
}
