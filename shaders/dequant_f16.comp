#version 460
// dequant_f16: Dst = rows of W (M, K) as halves in tiles. A workgroup decodes 4 rows × 256 columns, or 8 of types whose lanes decode
// a run of 16, so that both the blocks it reads and the runs it writes are whole.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "tiles.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 W, Dst, Grids;
    uint M, K;
} a;

#include "weights.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutVecs { uvec4 v[]; };

#ifdef ZERO
void put(uint row, uint k, uvec2 q, float s)
{
    float v[8];
    eight_of(q, s, v);
    OutVecs(a.Dst).v[tile_vec(row, k, a.K)] = uvec4(
        packHalf2x16(vec2(v[0], v[1])), packHalf2x16(vec2(v[2], v[3])),
        packHalf2x16(vec2(v[4], v[5])), packHalf2x16(vec2(v[6], v[7])));
}

void main()
{
    uint across = (padded(a.K) + 255) / 256;
    uint g = group();
    uint row = g / across * (LANES / 16) + gl_LocalInvocationID.x / 16;
    uint k = g % across * 256 + gl_LocalInvocationID.x % 16 * 16;
    if (row >= a.M || k >= padded(a.K))
        return;
    uvec4 q = uvec4(ZERO * 0x01010101u);
    float s = 0;
    if (k < a.K)
        q = run_at(weight_row(a.W, row, a.K), k, s);
    put(row, k, q.xy, s);
    put(row, k + 8, q.zw, s);
}
#else
void main()
{
    uint across = (padded(a.K) + 255) / 256;
    uint g = group();
    uint row = g / across * (LANES / 32) + gl_LocalInvocationID.x / 32;
    uint k = g % across * 256 + gl_LocalInvocationID.x % 32 * 8;
    if (row >= a.M || k >= padded(a.K))
        return;
    float v[8];
    [[unroll]] for (uint i = 0; i < 8; i++)
        v[i] = 0;
    if (k < a.K) {
        Row r = weight_row(a.W, row, a.K);
#ifdef TAIL
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? value_at(r, k + i) : 0;
#else
        dequant8(r, k, v);
#endif
    }
    OutVecs(a.Dst).v[tile_vec(row, k, a.K)] = uvec4(
        packHalf2x16(vec2(v[0], v[1])), packHalf2x16(vec2(v[2], v[3])),
        packHalf2x16(vec2(v[4], v[5])), packHalf2x16(vec2(v[6], v[7])));
}
#endif
