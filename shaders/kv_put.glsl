// How values get into the KV cache.

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

#ifndef BLOCKS
void put(uvec2 dst, uint i, float x0, float x1)
{
#ifdef KV_FLOATS
    if (KV_FLOATS == 0) {
        OutWords(dst).w[i / 2] = half_bits(x0) | half_bits(x1) << 16;
        return;
    }
#endif
#ifdef TYPE_F16
    OutWords(dst).w[i / 2] = half_bits(x0) | half_bits(x1) << 16;
#else
    OutWords(dst).w[i] = floatBitsToUint(x0);
    OutWords(dst).w[i + 1] = floatBitsToUint(x1);
#endif
}
#endif
