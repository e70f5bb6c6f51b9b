// IQ4_NL, IQ4_XS and MXFP4: 4 bits choose one of 16 uneven levels.

#if defined(TYPE_IQ4_NL) || defined(TYPE_IQ4_XS)
// level looks q up in {-127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113}, four signed
// bytes to a word: registers, where an array would go to memory.
float level(uint q)
{
    uint w = q < 8 ? (q < 4 ? 0xbfad9881u : 0xf6eaddcfu) : (q < 12 ? 0x26190d01u : 0x71594535u);
    return float(sbyte_of(w, q & 3));
}
#endif

#if defined(TYPE_IQ4_NL) // d f16, quants[16]: value j low nibble of byte j, value j+16 the high one
#define BLOCK 32
#define BLOCK_BYTES 18

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    float d = half_value(half_at(r, b));
    uvec2 q = uvec2(word_at(r, b + 2 + j % 16), word_at(r, b + 6 + j % 16)) >> (j < 16 ? 0 : 4);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = d * level(byte_of(q[i >> 2], i & 3) & 0xf);
        v[i] = y;
    }
}
#endif

#if defined(TYPE_IQ4_XS) // d f16, upper 2 bits of 8 scales u16, their low 4 bits[4], quants[128]
#define BLOCK 256
#define BLOCK_BYTES 136

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 256 * BLOCK_BYTES / 4, j = k % 256;
    uint head = Words(r.base).w[b], s = j / 32;
    uint sc = ((Words(r.base).w[b + 1] >> (4 * s)) & 0xf) | ((head >> (16 + 2 * s)) & 3) << 4;
    precise float scale = half_value(head & 0xffff) * float(int(sc) - 32);
    uint at = b + 2 + s * 4 + j % 16 / 4;
    uint shift = j % 32 < 16 ? 0 : 4;
    uvec2 q = uvec2(Words(r.base).w[at] >> shift, Words(r.base).w[at + 1] >> shift);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = scale * level(byte_of(q[i >> 2], i & 3) & 0xf);
        v[i] = y;
    }
}
#endif

#if defined(TYPE_MXFP4) // exponent u8, quants[16] in the order of IQ4_NL
#define BLOCK 32
#define BLOCK_BYTES 17

// four is twice a 4-bit float: 0 1 2 3 | 4 6 8 12, and the same below zero.
float four(uint q)
{
    float v = float(byte_of((q & 4) == 0 ? 0x03020100u : 0x0c080604u, q & 3));
    return q > 8 ? -v : v; // there is one zero
}

// The scale is 2^(e-128), in two factors of which none is a denormal, lest the driver take it for 0.
void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32, e = byte_at(r, b);
    float d = uintBitsToFloat((max(e, 2) - 1) << 23);
    float rest = e > 1 ? 1 : e == 1 ? 0.5 : 0.25;
    uvec2 q = uvec2(word_at_any(r, b + 1 + j % 16), word_at_any(r, b + 5 + j % 16)) >> (j < 16 ? 0 : 4);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = four(byte_of(q[i >> 2], i & 3) & 0xf) * rest * d;
        v[i] = y;
    }
}
#endif
