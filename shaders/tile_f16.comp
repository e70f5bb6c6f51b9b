#version 460
// tile_f16: Dst = rows of X (N, K) as halves in tiles, each row times a power of two that brings its largest value
// to 256 … 512, so that none overflows; Scales (N) undo it. One workgroup per row.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"
#include "tiles.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst, Scales;
    uint N, K, XStride, pad0;
} a;

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutVecs { uvec4 v[]; };

const uint BIAS = 127, SHIFT = 8; // of the exponent's field; the power of two that the largest value is brought to

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
    // A row of zeros, or of what is not finite, stays as it is.
    uint exponent = clamp(floatBitsToUint(top) >> 23 & 0xffu, 1 + SHIFT, 245 + SHIFT);
    if (top == 0 || isinf(top) || isnan(top))
        exponent = BIAS + SHIFT;
    float up = uintBitsToFloat((2 * BIAS + SHIFT - exponent) << 23);
    if (lane == 0)
        Floats(a.Scales).f[row] = uintBitsToFloat((exponent - SHIFT) << 23);
    for (uint k = lane * 8; k < padded(a.K); k += LANES * 8) {
        precise float v[8];
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? x.f[k + i] * up : 0;
        OutVecs(a.Dst).v[tile_vec(row, k, a.K)] = uvec4(
            packHalf2x16(vec2(v[0], v[1])), packHalf2x16(vec2(v[2], v[3])),
            packHalf2x16(vec2(v[4], v[5])), packHalf2x16(vec2(v[6], v[7])));
    }
}
