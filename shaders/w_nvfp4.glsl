// NVFP4: a scale u8 for each 16 values, then for each 16 eight bytes of nibbles, the low ones first
#define BLOCK 64
#define BLOCK_BYTES 36
#define ZERO 12
#define IN_ORDER
#include "levels.glsl"

struct Chunk {
    uvec4 q;
    uint scales;
};

Chunk load_chunk(Row w, uint i) // rows begin on 4 bytes
{
    Words p = Words(plus(w.base, i / 2 * BLOCK_BYTES));
    uint q = 1 + i % 2 * 4;
    return Chunk(uvec4(p.w[q], p.w[q + 1], p.w[q + 2], p.w[q + 3]), p.w[0] >> (16 * (i % 2)));
}

// eighth is half of an 8-bit float with 4 bits of exponent and 3 of mantissa, whose sign counts for nothing. 0x7f counts as 0.
float eighth(uint e)
{
    precise float s = unpackHalf2x16((e & 0x7f) << 7).x * 128;
    return e == 0x7f ? 0 : s;
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uvec4 low, high;
    levels_of(c.q, low, high);
    s = eighth((c.scales >> (8 * r)) & 0xff);
    return r == 0 ? uvec4(low.xy, high.xy) : uvec4(low.zw, high.zw);
}
