// Q2_0: d f16, 2 bits for each value
#define BLOCK 64
#define BLOCK_BYTES 18
#define ZERO 1
#define IN_ORDER

struct Chunk {
    uvec2 q;
    uint d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 2 * BLOCK_BYTES;
    return Chunk(words2_at(w, b + 2 + i % 2 * 8), half_at(w, b));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    s = half_value(c.d);
    uvec4 q = (uvec4(c.q[r]) >> uvec4(0, 8, 16, 24)) & 0xff;
    q = (q | q << 12) & 0x000f000fu;
    return (q | q << 6) & 0x03030303u;
}
