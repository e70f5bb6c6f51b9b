// IQ3_XXS: d f16, an index u8 for each 4 values, then for each 32 values a word: 7 signs for each 8, 4 bits of scale
#define BLOCK 256
#define BLOCK_BYTES 98
#define ZERO 0
#define IN_ORDER
#define GRID_AT 14336
#define GRID_ENTRIES 256
#include "grid.glsl"

struct Chunk {
    uvec2 q;
    uint signs, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, g = i % 8;
    return Chunk(words2_at(w, b + 2 + g * 8), word_at(w, b + 66 + g * 4), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint q = c.q[r], signs = c.signs >> (14 * r);
    s = sub_scale(c.d, 2 * (c.signs >> 28) + 1, 0.25);
    uvec2 first = signed8(uvec2(entry(q & 255), entry((q >> 8) & 255)), eight_signs(signs & 127));
    return uvec4(first, signed8(uvec2(entry((q >> 16) & 255), entry(q >> 24)), eight_signs((signs >> 7) & 127)));
}
