#version 460
// rms_norm: Dst = Scale * X / sqrt(mean(X²) + Eps) * W; see RMSNormArgs for which weights a row has. A row has ROW_LANES of a workgroup's lanes, each
// takes every ROW_LANES-th run of 4 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "row_sum.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Dst;
    uint Rows, Cols, XStride, DstStride;
    float Eps, Scale;
    uint Heads, pad0;
} a;

const uint AHEAD = 8; // runs that a lane asks for at once

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFloats4 { vec4 f[]; };

vec4 run4(Floats p, uint i)
{
    vec4 v;
    [[unroll]] for (uint k = 0; k < 4; k++)
        v[k] = 4 * i + k < a.Cols ? p.f[4 * i + k] : 0;
    return v;
}

void main()
{
    uint row = group() * (LANES / ROW_LANES) + gl_LocalInvocationID.x / ROW_LANES;
    bool there = row < a.Rows; // all lanes meet in the sum
    uint lane = gl_LocalInvocationID.x % ROW_LANES, runs = there ? (a.Cols + 3) / 4 : 0;
    bool whole = ((a.Cols | a.XStride | a.DstStride) & 3) == 0; // rows are of 16-byte runs
    uvec2 x = advance(a.X, row, a.XStride * 4), dst = advance(a.Dst, row, a.DstStride * 4);

    precise vec4 squares = vec4(0);
    for (uint first = lane; first < runs; first += AHEAD * ROW_LANES) {
        vec4 v[AHEAD];
        [[unroll]] for (uint u = 0; u < AHEAD; u++) {
            uint i = first + u * ROW_LANES;
            v[u] = vec4(0);
            if (i < runs)
                v[u] = whole ? Floats4(x).f[i] : run4(Floats(x), i);
        }
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            squares = fma(v[u], v[u], squares);
    }
    precise float own = (squares.x + squares.y) + (squares.z + squares.w);
    // Not inversesqrt: its precision is the driver's choice.
    precise float mean = sum_row(own) / float(a.Cols);
    precise float scale = 1.0 / sqrt(mean + a.Eps) * a.Scale;
    if (!there)
        return;
    bool weighted = (a.W.x | a.W.y) != 0;
    uvec2 w = advance(a.W, row % a.Heads, a.Cols * 4);
    if (whole) {
        for (uint i = lane; i < runs; i += ROW_LANES) {
            precise vec4 y = Floats4(x).f[i] * scale;
            if (weighted)
                y *= Floats4(w).f[i];
            OutFloats4(dst).f[i] = y;
        }
        return;
    }
    for (uint i = lane; i < a.Cols; i += ROW_LANES) {
        precise float y = Floats(x).f[i] * scale;
        if (weighted)
            y *= Floats(w).f[i];
        Floats(dst).f[i] = y;
    }
}
