// Super-blocks of 256: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K. Runs of 8 never leave a group of 16 or 32
// values that share a scale.

#if defined(TYPE_Q2_K) || defined(TYPE_Q3_K) || defined(TYPE_Q4_K) || defined(TYPE_Q5_K) || defined(TYPE_Q6_K)
#define BLOCK 256
#endif

#if defined(TYPE_Q2_K) // scales[16] (scale low, min high nibble), quants[64], d, dmin f16
#define BLOCK_BYTES 84

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES / 4, j = k % 256;
    vec2 d = unpackHalf2x16(Words(r.base).w[b + 20]);
    uint sc = byte_of(Words(r.base).w[b + j / 64], j / 16 % 4);
    precise float scale = d.x * float(sc & 0xf);
    precise float low = d.y * float(sc >> 4);
    uint at = b + 4 + j / 128 * 8 + j % 32 / 4;
    uint shift = j % 128 / 32 * 2;
    uvec2 q = uvec2(Words(r.base).w[at] >> shift, Words(r.base).w[at + 1] >> shift);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = scale * float(byte_of(q[i >> 2], i & 3) & 3) - low;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q3_K) // third bits[32], quants[64], scales[12] of 6 bits, d f16
#define BLOCK_BYTES 110

// The low 4 bits of the 16 scales lie in bytes 0–7 (scales 8–15 in the high nibbles), their
// upper 2 bits in bytes 8–11.
float q3_scale(Row r, uint b, uint s)
{
    uint lo = byte_at(r, b + 96 + s % 8) >> (s < 8 ? 0 : 4);
    uint hi = byte_at(r, b + 104 + s % 4) >> (s / 4 * 2);
    return float(int((lo & 0xf) | (hi & 3) << 4) - 32);
}

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES, j = k % 256;
    float d = half_value(half_at(r, b + 108));
    precise float scale = d * q3_scale(r, b, j / 16);
    uint at = b + 32 + j / 128 * 32 + j % 32;
    uint shift = j % 128 / 32 * 2;
    uvec2 q = uvec2(word_at(r, at), word_at(r, at + 4)) >> shift;
    uvec2 high = uvec2(word_at(r, b + j % 32), word_at(r, b + j % 32 + 4)) >> (j / 32);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        int two = int(byte_of(q[i >> 2], i & 3) & 3);
        int third = int(byte_of(high[i >> 2], i & 3) & 1);
        precise float y = scale * float(two + 4 * third - 4);
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K)
// scale_min gives d*scale and dmin*min of group s (0–7): 6 bits each in 12 bytes at word b+1.
// Groups 0–3 lie in the low 6 bits of bytes s and s+4; of 4–7 the low 4 bits lie in the nibbles
// of byte s+4, the upper 2 in the top bits of bytes s-4 and s.
vec2 scale_min(Row r, uint b, uint s)
{
    vec2 d = unpackHalf2x16(Words(r.base).w[b]);
    uint w0 = Words(r.base).w[b + 1], w1 = Words(r.base).w[b + 2], w2 = Words(r.base).w[b + 3];
    uint i = s & 3, sc, m;
    if (s < 4) {
        sc = byte_of(w0, i) & 63;
        m = byte_of(w1, i) & 63;
    } else {
        uint low = byte_of(w2, i);
        sc = (low & 0xf) | byte_of(w0, i) >> 6 << 4;
        m = low >> 4 | byte_of(w1, i) >> 6 << 4;
    }
    precise float scale = d.x * float(sc);
    precise float lowest = d.y * float(m);
    return vec2(scale, lowest);
}
#endif

#if defined(TYPE_Q4_K) // d, dmin f16, scales[12], quants[128]
#define BLOCK_BYTES 144

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES / 4, j = k % 256;
    vec2 sm = scale_min(r, b, j / 32);
    uint at = b + 4 + j / 64 * 8 + j % 32 / 4;
    uint shift = j % 64 < 32 ? 0 : 4;
    uvec2 q = uvec2(Words(r.base).w[at] >> shift, Words(r.base).w[at + 1] >> shift);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = sm.x * float(byte_of(q[i >> 2], i & 3) & 0xf) - sm.y;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q5_K) // d, dmin f16, scales[12], fifth bits[32], quants[128]
#define BLOCK_BYTES 176

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES / 4, j = k % 256;
    vec2 sm = scale_min(r, b, j / 32);
    uint at = b + 12 + j / 64 * 8 + j % 32 / 4;
    uint shift = j % 64 < 32 ? 0 : 4;
    uvec2 q = uvec2(Words(r.base).w[at] >> shift, Words(r.base).w[at + 1] >> shift);
    uint fifth = b + 4 + j % 32 / 4;
    uvec2 high = uvec2(Words(r.base).w[fifth], Words(r.base).w[fifth + 1]) >> (j / 32);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint five = (byte_of(q[i >> 2], i & 3) & 0xf) | (byte_of(high[i >> 2], i & 3) & 1) << 4;
        precise float y = sm.x * float(five) - sm.y;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q6_K) // low 4 bits[128], upper 2 bits[64], scales[16] signed, d f16
#define BLOCK_BYTES 210

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES, j = k % 256;
    float d = half_value(half_at(r, b + 208));
    uint s = j / 16;
    precise float scale = d * float(sbyte_of(half_at(r, b + 192 + (s & ~1u)), s & 1));
    uint n = j / 128, sub = j % 128 / 32, l = j % 32;
    uint at = b + n * 64 + (sub & 1) * 32 + l;
    uvec2 lo = uvec2(word_at(r, at), word_at(r, at + 4)) >> (sub < 2 ? 0 : 4);
    uint up = b + 128 + n * 32 + l;
    uvec2 hi = uvec2(word_at(r, up), word_at(r, up + 4)) >> (2 * sub);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint six = (byte_of(lo[i >> 2], i & 3) & 0xf) | (byte_of(hi[i >> 2], i & 3) & 3) << 4;
        precise float y = scale * float(int(six) - 32);
        v[i] = y;
    }
}
#endif
