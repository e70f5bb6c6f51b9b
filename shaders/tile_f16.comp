#version 460
// tile_f16: Dst = rows of X (N, K) as halves in tiles, each row times a power of two that brings its largest value
// to 256 … 512, so that none overflows; Scales (N) undo it. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"
#include "tiles.glsl"
#include "fit.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst, Scales;
    uint N, K, XStride, pad0;
} a;

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutVecs { uvec4 v[]; };

void main()
{
    uint row = group();
    if (row >= a.N)
        return;
    uint lane = gl_LocalInvocationID.x;
    Floats x = Floats(advance(a.X, row, a.XStride * 4));
    float top = 0;
    for (uint i = lane; i < a.K; i += LANES)
        top = max(top, abs(x.f[i]));
    top = max_lanes(top);
    float down, up = fit(top, down);
    if (lane == 0)
        Floats(a.Scales).f[row] = down;
    for (uint k = lane * 8; k < padded(a.K); k += LANES * 8) {
        precise float v[8];
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? x.f[k + i] * up : 0;
        OutVecs(a.Dst).v[tile_vec(row, k, a.K)] = uvec4(
            packHalf2x16(vec2(v[0], v[1])), packHalf2x16(vec2(v[2], v[3])),
            packHalf2x16(vec2(v[4], v[5])), packHalf2x16(vec2(v[6], v[7])));
    }
}
