// TQ1_0: quants[48] of five digits in base 3, quants[4] of four, d f16. Chunks 0–5 have two digits of 16 bytes, chunk 6 the last digit of the first
// 32 bytes, chunk 7 that of the next 16 bytes, and all of the last 4.
#define BLOCK 256
#define BLOCK_BYTES 54
#define ZERO 1

struct Chunk {
    uvec4 q1, q2;
    uint d;
};

uint first_of(uint i)
{
    uint c = i % 8;
    return i / 8 * 256 + (c < 4 ? c % 2 * 64 + c / 2 * 16 : c < 6 ? 160 + c % 2 * 32 : c == 6 ? 128 : 224);
}

uint second_of(uint i) { return first_of(i) + (i % 8 < 4 ? 32 : 16); }

uint chunk_of(uint k)
{
    uint n = k / 16 % 16; // the run of the block
    uint c = n < 8 ? n % 2 * 2 + n / 4 : n < 10 ? 6 : n < 14 ? 4 + (n - 10) / 2 : 7;
    return k / 256 * 8 + c;
}

uint run_of(uint k) { return k % 256 < 128 ? k / 32 % 2 : k / 16 % 2; }

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, c = i % 8;
    uvec4 q = words4_at(w, b + (c < 6 ? c / 2 * 16 : c == 6 ? 0 : 32));
    uvec4 more = q;
    if (c == 6)
        more = words4_at(w, b + 16);
    if (c == 7)
        more = uvec4(word_at(w, b + 48));
    return Chunk(q, more, half_at(w, b + 52));
}

// digit is what of each byte stands behind three times its fraction, the byte times a power of 3: 0, 1 or 2.
uvec4 digit(uvec4 q, uvec4 power)
{
    const uint TWO = 0x00ff00ffu;
    uvec4 even = (q & TWO) * power & TWO, odd = ((q >> 8) & TWO) * power & TWO;
    return ((even * 3 >> 8) & 0x00030003u) | ((odd * 3) & 0x03000300u);
}

uvec4 run(Chunk c, uint i, uint r, out float s)
{
    uint n = i % 8;
    s = half_value(c.d);
    uint power = n < 6 ? (n % 2 == 0 ? 1 : 9) * (r == 0 ? 1 : 3) : 81;
    return digit(r == 0 ? c.q1 : c.q2, n == 7 && r == 1 ? uvec4(1, 3, 9, 27) : uvec4(power));
}
