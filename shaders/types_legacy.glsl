// Blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. In the 4- and 5-bit ones byte j of the quants
// holds values j (low nibble) and j+16 (high nibble).

#if defined(TYPE_Q4_0) || defined(TYPE_Q4_1) || defined(TYPE_Q5_0) || defined(TYPE_Q5_1) || defined(TYPE_Q8_0)
#define BLOCK 32

// nibble gives the 4 bits of value j+i from w, the words of its 8 quant bytes.
uint nibble(uvec2 w, uint j, uint i) { return (w[i >> 2] >> (8 * (i & 3) + (j < 16 ? 0 : 4))) & 0xf; }
#endif

#if defined(TYPE_Q4_0) // d f16, quants[16]
#define BLOCK_BYTES 18

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    float d = half_value(half_at(r, b));
    uvec2 q = uvec2(word_at(r, b + 2 + j % 16), word_at(r, b + 6 + j % 16));
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = float(int(nibble(q, j, i)) - 8) * d;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q4_1) // d, m f16, quants[16]
#define BLOCK_BYTES 20

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    vec2 dm = unpackHalf2x16(Words(r.base).w[b / 4]);
    uvec2 q = uvec2(Words(r.base).w[(b + 4 + j % 16) / 4], Words(r.base).w[(b + 8 + j % 16) / 4]);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = float(nibble(q, j, i)) * dm.x + dm.y;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q5_0) // d f16, fifth bits u32, quants[16]
#define BLOCK_BYTES 22

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    float d = half_value(half_at(r, b));
    uint high = word_at(r, b + 2) >> j;
    uvec2 q = uvec2(word_at(r, b + 6 + j % 16), word_at(r, b + 10 + j % 16));
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint five = nibble(q, j, i) | ((high >> i) & 1) << 4;
        precise float y = float(int(five) - 16) * d;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q5_1) // d, m f16, fifth bits u32, quants[16]
#define BLOCK_BYTES 24

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    vec2 dm = unpackHalf2x16(Words(r.base).w[b / 4]);
    uint high = Words(r.base).w[b / 4 + 1] >> j;
    uvec2 q = uvec2(Words(r.base).w[(b + 8 + j % 16) / 4], Words(r.base).w[(b + 12 + j % 16) / 4]);
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uint five = nibble(q, j, i) | ((high >> i) & 1) << 4;
        precise float y = float(five) * dm.x + dm.y;
        v[i] = y;
    }
}
#endif

#if defined(TYPE_Q8_0) // d f16, quants[32] signed
#define BLOCK_BYTES 34

void dequant8(Row r, uint k, out float v[8])
{
    uint b = k / 32 * BLOCK_BYTES, j = k % 32;
    float d = half_value(half_at(r, b));
    uvec2 q = uvec2(word_at(r, b + 2 + j), word_at(r, b + 6 + j));
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = float(sbyte_of(q[i >> 2], i & 3)) * d;
        v[i] = y;
    }
}
#endif
