// IQ3_S: d f16, for each 4 values: index u8[64], its ninth bit u8[8]; signs u8[32], scales[4], a nibble for each 32 values
#define BLOCK 256
#define BLOCK_BYTES 110
#define ZERO 0
#define IN_ORDER
#define GRID_AT 15360
#define GRID_ENTRIES 512
#include "grid.glsl"

struct Chunk {
    uvec2 q;
    uint high, signs, scale, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, g = i % 8;
    return Chunk(words2_at(w, b + 2 + g * 8), byte_at(w, b + 66 + g), word_at(w, b + 74 + g * 4), byte_at(w, b + 106 + g / 2), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint q = c.q[r], high = c.high << (8 - 4 * r), signs = c.signs >> (16 * r);
    s = sub_scale(c.d, 2 * ((c.scale >> (4 * (i % 2))) & 15) + 1, 1);
    uvec2 first = signed8(uvec2(entry((q & 255) | (high & 256)), entry(((q >> 8) & 255) | ((high >> 1) & 256))), signs);
    return uvec4(first, signed8(uvec2(entry(((q >> 16) & 255) | ((high >> 2) & 256)), entry((q >> 24) | ((high >> 3) & 256))), signs >> 8));
}
