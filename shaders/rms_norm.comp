#version 460
// rms_norm: Dst = X / sqrt(mean(X²) + Eps) * W. A row has ROW_LANES of a workgroup's lanes, each takes every
// ROW_LANES-th run of 4 values. They are fewer than all only where there are no more runs: the lanes that a row then
// lacks would add zeros, so the bits are the same.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(constant_id = 0) const uint ROW_LANES = DEFAULT_ROW_LANES;

shared float tree[LANES];

// sum_row adds up what a row's lanes have: lane i meets lane i + ROW_LANES/2, then i + ROW_LANES/4 …
float sum_row(float v)
{
    uint at = gl_LocalInvocationID.x, lane = at % ROW_LANES;
    tree[at] = v;
    barrier();
    [[unroll]] for (uint s = ROW_LANES / 2; s > 0; s >>= 1) {
        if (lane < s) {
            precise float t = tree[at] + tree[at + s];
            tree[at] = t;
        }
        barrier();
    }
    return tree[at - lane];
}

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Dst;
    uint Rows, Cols, XStride, DstStride;
    float Eps;
    uint pad0;
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
    precise float scale = 1.0 / sqrt(mean + a.Eps);
    if (!there)
        return;
    if (whole) {
        for (uint i = lane; i < runs; i += ROW_LANES) {
            precise vec4 y = Floats4(x).f[i] * scale * Floats4(a.W).f[i];
            OutFloats4(dst).f[i] = y;
        }
        return;
    }
    for (uint i = lane; i < a.Cols; i += ROW_LANES) {
        precise float y = Floats(x).f[i] * scale * Floats(a.W).f[i];
        Floats(dst).f[i] = y;
    }
}
