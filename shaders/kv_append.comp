#version 460
// kv_append: stores K and V of each row at its position in the paged cache. One lane per pair of
// values: a pair is one word of F16.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 K, V, Pages, Pos, Seq;
    uint Rows, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, KStride, VStride, pad0;
} a;

#include "kv.glsl"

// half_bits rounds to the nearest F16, ties to even. By hand, because packHalf2x16 may round as the
// driver likes, and Mesa's lavapipe cuts off.
uint half_bits(float f)
{
    uint u = floatBitsToUint(f), sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;
    if (u >= 0x47800000) // 2^16 and more, infinity, NaN
        return sign | (u > 0x7f800000 ? 0x7e00 : 0x7c00);
    if (u >= 0x38800000) // a normal F16; rounding may carry into infinity
        return sign | ((u + 0xfff + ((u >> 13) & 1) - 0x38000000) >> 13);
    if (u < 0x33000000) // below half of the least
        return sign;
    uint shift = 126 - (u >> 23); // 14 … 24
    uint m = (u & 0x7fffff) | 0x800000;
    uint h = m >> shift, rest = m & ((1u << shift) - 1), tie = 1u << (shift - 1);
    return sign | (h + ((rest > tie || (rest == tie && (h & 1) != 0)) ? 1 : 0));
}

void put(uvec2 dst, uint i, float x0, float x1)
{
#ifdef TYPE_F16
    OutWords(dst).w[i / 2] = half_bits(x0) | half_bits(x1) << 16;
#else
    OutWords(dst).w[i] = floatBitsToUint(x0);
    OutWords(dst).w[i + 1] = floatBitsToUint(x1);
#endif
}

void main()
{
    uint keyPairs = a.HeadsKV * a.KeyLen / 2;
    uint pairs = keyPairs + a.HeadsKV * a.ValLen / 2;
    uint row = item() / pairs, pair = item() % pairs;
    if (row >= a.Rows)
        return;
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    bool isKey = pair < keyPairs;
    uint len = isKey ? a.KeyLen : a.ValLen;
    uint n = 2 * (isKey ? pair : pair - keyPairs); // value of the row's K or V
    Floats src = Floats(isKey ? advance(a.K, row, a.KStride * 4) : advance(a.V, row, a.VStride * 4));
    put(kv_head(isKey ? at.k : at.v, n / len, len), n % len, src.f[n], src.f[n + 1]);
}
