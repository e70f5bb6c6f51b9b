#version 460
// rms_norm, with Dst as bytes too: Q and S as quantize_q8 makes them. A row is PER × LANES runs of 4 values at most, all asked for
// at once, and of whole blocks of 32. Where it has several workgroups each sums it up for itself, and stores LANES runs of it: one
// alone would be busy storing.
#extension GL_GOOGLE_include_directive : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "subgroup.glsl"
#include "norm.glsl"

layout(constant_id = 1) const uint PER = DEFAULT_PER;

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Dst, Q, S;
    uint Rows, Cols, XStride, DstStride;
    float Eps;
    uint Parts; // workgroups of a row: 1 or PER
} a;

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFloats4 { vec4 f[]; };

const uint Q8_LANES = LANES;
#define Q8_WITHIN
#include "q8.glsl"

const uint AHEAD = 8; // subgroups' sums that are loaded at once
shared float part[LANES / 4 + AHEAD];

float sum_all(float v)
{
    v = sum_within(v, gl_SubgroupSize);
    if (gl_SubgroupInvocationID == 0)
        part[gl_SubgroupID] = v;
    barrier();
    float sum = 0;
    for (uint i = 0; i < gl_NumSubgroups; i += AHEAD) {
        float some[AHEAD];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            some[u] = part[i + u];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            sum += i + u < gl_NumSubgroups ? some[u] : 0;
    }
    return sum;
}

bool stores(uint u, uint part) { return a.Parts == 1 || u == part; }

void main()
{
    uint row = group() / a.Parts, part = group() % a.Parts;
    if (row >= a.Rows)
        return;
    bool within = gl_SubgroupSize >= 8; // a block's lanes are of one subgroup
    uint lane = within ? subgroup_lane() : gl_LocalInvocationID.x, runs = a.Cols / 4;
    uvec2 x = advance(a.X, row, a.XStride * 4), dst = advance(a.Dst, row, a.DstStride * 4);

    vec4 v[PER], w[PER];
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = u * LANES + lane;
        v[u] = i < runs ? Floats4(x).f[i] : vec4(0);
        w[u] = i < runs && stores(u, part) ? Floats4(a.W).f[i] : vec4(0);
    }
    float squares = 0;
    [[unroll]] for (uint u = 0; u < PER; u++)
        squares += sum_squares(v[u]);
    float scale = norm_scale(sum_all(squares), a.Cols, a.Eps);
    [[unroll]] for (uint u = 0; u < PER; u++) {
        if (!stores(u, part))
            continue;
        uint i = u * LANES + lane;
        vec4 y = normed_run(v[u], scale, w[u]);
        if (i < runs)
            OutFloats4(dst).f[i] = y;
        if (within)
            put_q8_within(y, i < runs, a.Q, a.S, (row * runs + i) / 8);
        else
            put_q8(y, i < runs, a.Q, a.S, (row * runs + i) / 8);
    }
}
