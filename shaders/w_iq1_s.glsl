// IQ1_S: d f16, for each 8 values an index u8, then for each 32 u16: its upper 3 bits four times, 3 bits of scale, whether the eighth is below
#define BLOCK 256
#define BLOCK_BYTES 50
#include "iq1.glsl"

struct Chunk {
    uint q, high, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, g = i % 8;
    return Chunk(word_at(w, b + 2 + g * 4), half_at(w, b + 34 + g * 2), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint q = c.q >> (16 * r), high = c.high >> (6 * r);
    bool below = (c.high & 0x8000) != 0;
    s = sub_scale(c.d, 2 * ((c.high >> 12) & 7) + 1, 0.125);
    return uvec4(ones((q & 255) | (high & 7) << 8, below), ones(((q >> 8) & 255) | (high & 0x38) << 5, below));
}
