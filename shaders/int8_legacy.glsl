// Blocks of 32. A chunk is a block. In the 4- and 5-bit ones its first 16 values are the low nibbles.

#if defined(TYPE_Q4_0) || defined(TYPE_Q4_1) || defined(TYPE_Q5_0) || defined(TYPE_Q5_1) || defined(TYPE_Q8_0) || defined(TYPE_IQ4_NL) || defined(TYPE_MXFP4)
#define BLOCK 32
uint first_of(uint i) { return i * 32; }
uint second_of(uint i) { return i * 32 + 16; }
#endif

// fifth_bits moves bits 0–3 of h to bit 4 of each byte.
uint fifth_bits(uint h) { return ((h & 0xf) * 0x02040810u) & 0x10101010u; }

uvec4 fifths(uint h) { return uvec4(fifth_bits(h), fifth_bits(h >> 4), fifth_bits(h >> 8), fifth_bits(h >> 12)); }

#if defined(TYPE_Q4_0) // d f16, quants[16]
#define BLOCK_BYTES 18
struct Chunk {
    Headed q;
};

Chunk load_chunk(Row w, uint i) { return Chunk(headed_at(w, i * BLOCK_BYTES)); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q = bytes_of(b.q);
    int sum = dot16_u4(q & NIBBLES, x1.q) + dot16_u4((q >> 4) & NIBBLES, x2.q) - 8 * (x1.sum + x2.sum);
    return half_value(head_of(b.q)) * x1.d * float(sum);
}
#endif

#if defined(TYPE_Q4_1) // d, m f16, quants[16]
#define BLOCK_BYTES 20
struct Chunk {
    uvec4 q;
    uint dm;
};

Chunk load_chunk(Row w, uint i)
{
    return Chunk(words4_at(w, i * BLOCK_BYTES + 4), aligned_word_at(w, i * BLOCK_BYTES));
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    vec2 dm = unpackHalf2x16(b.dm);
    int sum = dot16_u4(b.q & NIBBLES, x1.q) + dot16_u4((b.q >> 4) & NIBBLES, x2.q);
    return x1.d * (dm.x * float(sum) + dm.y * float(x1.sum + x2.sum));
}
#endif

#if defined(TYPE_Q5_0) // d f16, fifth bits u32, quants[16]
#define BLOCK_BYTES 22
struct Chunk {
    Headed q; // headed by the upper half of the fifth bits
    uint d;   // the word before
    uint odd; // 2 where d is that word's upper half, else the lower half of the fifth bits is
};

#ifdef LONGS
Chunk load_chunk(Row w, uint i)
{
    uint off = i * BLOCK_BYTES;
    return Chunk(headed_at(w, off + 4), half_at(w, off) | half_at(w, off + 2) << 16, 0);
}
#else
Chunk load_chunk(Row w, uint i)
{
    uint off = i * BLOCK_BYTES + w.cut;
    uvec2 at = plus(w.base, off & ~3);
    return Chunk(Headed(sixteen_at(plus(at, 4)), off & 2), Words(at).w[0], off & 2);
}
#endif

uint fifth_of(Chunk b)
{
#ifdef LONGS
    uint low = b.d >> 16;
#else
    uint low = mix(b.d >> 16, b.q.words.w.x & 0xffff, b.odd != 0);
#endif
    return low | head_of(b.q) << 16;
}

float scale_of(Chunk b) { return half_value(b.d >> (8 * b.odd)); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q = bytes_of(b.q);
    uint h = fifth_of(b);
    uvec4 q1 = (q & NIBBLES) | fifths(h), q2 = ((q >> 4) & NIBBLES) | fifths(h >> 16);
    int sum = dot16_u5(q1, x1.q) + dot16_u5(q2, x2.q) - 16 * (x1.sum + x2.sum);
    return scale_of(b) * x1.d * float(sum);
}
#endif

#if defined(TYPE_Q5_1) // d, m f16, fifth bits u32, quants[16]
#define BLOCK_BYTES 24
struct Chunk {
    uvec4 q;
    uint h, dm;
};

Chunk load_chunk(Row w, uint i)
{
    uvec2 head = load8(w.base, 3 * i);
    return Chunk(uvec4(load8(w.base, 3 * i + 1), load8(w.base, 3 * i + 2)), head.y, head.x);
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q1 = (b.q & NIBBLES) | fifths(b.h), q2 = ((b.q >> 4) & NIBBLES) | fifths(b.h >> 16);
    vec2 dm = unpackHalf2x16(b.dm);
    int sum = dot16_u5(q1, x1.q) + dot16_u5(q2, x2.q);
    return x1.d * (dm.x * float(sum) + dm.y * float(x1.sum + x2.sum));
}
#endif

#if defined(TYPE_Q8_0) // d f16, quants[32] signed
#define BLOCK_BYTES 34
struct Chunk {
    Headed q1;
    uvec4 q2; // but for their first two bytes, where those are the last of what q1 has loaded
};

Chunk load_chunk(Row w, uint i)
{
    Chunk b;
    b.q1 = headed_at(w, i * BLOCK_BYTES);
#ifdef LONGS
    b.q2 = words4_at(w, i * BLOCK_BYTES + 18);
#else
    Words p = Words(plus(w.base, (i * BLOCK_BYTES + w.cut) & ~3));
    b.q2 = uvec4(p.w[5], p.w[6], p.w[7], p.w[8]);
#endif
    return b;
}

uvec4 second_bytes(Chunk b)
{
#ifdef LONGS
    return b.q2;
#else
    return mix((uvec4(b.q1.words.next, b.q2.xyz) >> 16) | (b.q2 << 16), b.q2, bvec4(b.q1.odd != 0));
#endif
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return half_value(head_of(b.q1)) * x1.d * float(dot16(bytes_of(b.q1), x1.q) + dot16(second_bytes(b), x2.q));
}
#endif
