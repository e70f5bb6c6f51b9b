// IQ1_M: for each 8 values an index u8, then a nibble: its upper 3 bits, whether the eighth is below; four u16: a scale of 3 bits for each 16 values, and a
// nibble of d f16
#define BLOCK 256
#define BLOCK_BYTES 56
#include "iq1.glsl"

struct Chunk {
    uint q, high;
    uvec2 scales;
};

Chunk load_chunk(Row w, uint i) // rows begin on 8 bytes
{
    uint g = i % 8;
    Words p = Words(plus(w.base, i / 8 * BLOCK_BYTES));
    return Chunk(p.w[g], p.w[8 + g / 2] >> (16 * (g % 2)), uvec2(p.w[12], p.w[13]));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint g = i % 8, q = c.q >> (16 * r), high = c.high >> (8 * r);
    uint d = ((c.scales.x >> 12) & 15) | ((c.scales.x >> 24) & 0xf0) | ((c.scales.y >> 4) & 0xf00) | ((c.scales.y >> 16) & 0xf000);
    uint scale = (g < 4 ? c.scales.x : c.scales.y) >> (g / 2 % 2 * 16 + g % 2 * 6 + 3 * r);
    s = sub_scale(d, 2 * (scale & 7) + 1, 0.125);
    return uvec4(ones((q & 255) | (high & 7) << 8, (high & 8) != 0), ones(((q >> 8) & 255) | (high & 0x70) << 4, (high & 0x80) != 0));
}
