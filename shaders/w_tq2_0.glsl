// TQ2_0: quants[64], d f16. Half n of the block, 16-byte half h of its 32 bytes, values 32·s and 32·s + 64 on: chunk 4n + 2s + h.
#define BLOCK 256
#define BLOCK_BYTES 66
#define ZERO 1

struct Chunk {
    uvec4 q;
    uint d;
};

uint first_of(uint i) { return i / 8 * 256 + i / 4 % 2 * 128 + i / 2 % 2 * 32 + i % 2 * 16; }
uint second_of(uint i) { return first_of(i) + 64; }
uint chunk_of(uint k) { return k / 256 * 8 + k / 128 % 2 * 4 + k / 32 % 2 * 2 + k / 16 % 2; }
uint run_of(uint k) { return k / 64 % 2; }

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES;
    return Chunk(words4_at(w, b + i / 4 % 2 * 32 + i % 2 * 16), half_at(w, b + 64));
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    s = half_value(c.d);
    return (c.q >> (i / 2 % 2 * 2 + 4 * r)) & 0x03030303u;
}
