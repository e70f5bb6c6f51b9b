// IQ2_S: d f16, for each 8 values: index u8[32], signs u8[32], upper 2 bits of the index u8[8]; scales[8], a nibble for each 16 values
#define BLOCK 256
#define BLOCK_BYTES 82
#define ZERO 0
#define IN_ORDER
#define GRID_AT 6144
#define GRID_ENTRIES 1024
#define GRID_8
#include "grid.glsl"

struct Chunk {
    uint q, signs, high, scales, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, g = i % 8;
    return Chunk(word_at(w, b + 2 + g * 4), word_at(w, b + 34 + g * 4), byte_at(w, b + 66 + g), byte_at(w, b + 74 + g), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint q = c.q >> (16 * r), signs = c.signs >> (16 * r), high = c.high >> (4 * r);
    s = sub_scale(c.d, 2 * ((c.scales >> (4 * r)) & 15) + 1, 0.125);
    return uvec4(signed8(entry((q & 255) | (high & 3) << 8), signs), signed8(entry(((q >> 8) & 255) | (high & 12) << 6), signs >> 8));
}
