// IQ2_XS: d f16, for each 8 values u16: 9 bits of index, 7 signs; scales[8], a nibble for each 16 values
#define BLOCK 256
#define BLOCK_BYTES 74
#define ZERO 0
#define IN_ORDER
#define GRID_AT 2048
#define GRID_ENTRIES 512
#define GRID_8
#include "grid.glsl"

struct Chunk {
    uvec2 q;
    uint scales, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, g = i % 8;
    return Chunk(words2_at(w, b + 2 + g * 8), byte_at(w, b + 66 + g), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint q = c.q[r];
    s = sub_scale(c.d, 2 * ((c.scales >> (4 * r)) & 15) + 1, 0.125);
    return uvec4(signed8(entry(q & 511), eight_signs((q >> 9) & 127)), signed8(entry((q >> 16) & 511), eight_signs(q >> 25)));
}
