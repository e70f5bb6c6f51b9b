// Q1_0: d f16, a bit for each value. A byte is twice the bit.
#define BLOCK 128
#define BLOCK_BYTES 18
#define ZERO 1
#define IN_ORDER

struct Chunk {
    uint q, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 4 * BLOCK_BYTES;
    return Chunk(word_at(w, b + 2 + i % 4 * 4), half_at(w, b));
}

// twice makes bytes of the lowest 4 bits of each word.
uvec4 twice(uvec4 q) { return ((q & 15) * 0x00408102u) & 0x02020202u; }

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    s = half_value(c.d);
    return twice(uvec4(c.q >> (16 * r)) >> uvec4(0, 4, 8, 12));
}
