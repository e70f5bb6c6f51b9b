#version 460
// dequant_f16: Dst = rows of W (M, K) as halves in tiles. A workgroup decodes 4 rows × 256 columns, so that
// both the blocks it reads and the runs it writes are whole.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "tiles.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 W, Dst, Grids;
    uint M, K;
} a;

#include "weights.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutVecs { uvec4 v[]; };

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
