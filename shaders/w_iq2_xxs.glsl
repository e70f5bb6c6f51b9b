// IQ2_XXS: d f16, then for each 32 values an index u8 for each 8, and a word: 7 signs for each 8, 4 bits of scale
#define BLOCK 256
#define BLOCK_BYTES 66
#define ZERO 0
#define IN_ORDER
#define GRID_AT 0
#define GRID_ENTRIES 256
#define GRID_8
#include "grid.glsl"

struct Chunk {
    uvec2 q;
    uint d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES;
    return Chunk(words2_at(w, b + 2 + i % 8 * 8), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint index = c.q.x >> (16 * r), signs = c.q.y >> (14 * r);
    s = sub_scale(c.d, 2 * (c.q.y >> 28) + 1, 0.125);
    return uvec4(signed8(entry(index & 255), eight_signs(signs & 127)), signed8(entry((index >> 8) & 255), eight_signs((signs >> 7) & 127)));
}
