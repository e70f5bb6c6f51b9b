// Super-blocks of 256: 8 chunks. Chunk p of a block has the quants of 16 bytes.

#if defined(TYPE_Q2_K) || defined(TYPE_Q3_K) || defined(TYPE_Q4_K) || defined(TYPE_Q5_K) || defined(TYPE_Q6_K)
#define BLOCK 256
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K)
// 16 bytes: half a group of 32 in the low nibbles, half the next group in the high ones.
uint first_of(uint i) { return i / 2 * 64 + i % 2 * 16; }
uint second_of(uint i) { return first_of(i) + 32; }

// pair_scales gives scale and min of groups 2j and 2j+1, a pair to a word: 6 bits each in 12 bytes. Of groups
// 0–3 they are the low 6 bits of bytes s and s+4; of 4–7 the low 4 bits are the nibbles of byte s+4, the
// upper 2 the top bits of bytes s-4 and s.
uvec2 pair_scales(uvec3 w, uint j)
{
    w >>= 16 * (j & 1);
    uint sc = j < 2 ? w.x & 0x3f3fu : (w.z & 0x0f0fu) | ((w.x >> 2) & 0x3030u);
    uint m = j < 2 ? w.y & 0x3f3fu : ((w.z >> 4) & 0x0f0fu) | ((w.y >> 2) & 0x3030u);
    return uvec2(sc, m);
}

#ifdef TYPE_Q4_K
#define DOT16 dot16_u4
#else
#define DOT16 dot16_u5
#endif

float dot_pair(uvec4 head, uint j, uvec4 q1, uvec4 q2, X16 x1, X16 x2)
{
    vec2 d = unpackHalf2x16(head.x);
    uvec2 sm = pair_scales(head.yzw, j);
    ivec2 sc = ivec2(sm.x & 0xff, (sm.x >> 8) & 0xff), m = ivec2(sm.y & 0xff, (sm.y >> 8) & 0xff);
    float sum = x1.d * float(sc.x * DOT16(q1, x1.q)) + x2.d * float(sc.y * DOT16(q2, x2.q));
    float low = x1.d * float(m.x * x1.sum) + x2.d * float(m.y * x2.sum);
    return d.x * sum - d.y * low;
}
#endif

#if defined(TYPE_Q4_K) // d, dmin f16, scales[12], quants[128]
#define BLOCK_BYTES 144
struct Chunk {
    uvec4 head, q;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * 9;
    return Chunk(load16(w.base, b), load16(w.base, b + 1 + i % 8));
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return dot_pair(b.head, i % 8 / 2, b.q & 0x0f0f0f0fu, (b.q >> 4) & 0x0f0f0f0fu, x1, x2);
}
#endif

#if defined(TYPE_Q5_K) // d, dmin f16, scales[12], fifth bits[32], quants[128]
#define BLOCK_BYTES 176
struct Chunk {
    uvec4 head, h, q;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * 11;
    return Chunk(load16(w.base, b), load16(w.base, b + 1 + i % 2), load16(w.base, b + 3 + i % 8));
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uint j = i % 8 / 2;
    uvec4 h = b.h >> (2 * j);
    uvec4 q1 = (b.q & 0x0f0f0f0fu) | (h & 0x01010101u) << 4;
    uvec4 q2 = ((b.q >> 4) & 0x0f0f0f0fu) | (h & 0x02020202u) << 3;
    return dot_pair(b.head, j, q1, q2, x1, x2);
}
#endif

#if defined(TYPE_Q2_K) || defined(TYPE_Q3_K) || defined(TYPE_Q6_K)
// Half n of the block, 16-byte half h of its 32-byte planes, values 32·s and 32·s + 64 on: chunk 4n + 2s + h.
uint first_of(uint i) { return i / 8 * 256 + i / 4 % 2 * 128 + i / 2 % 2 * 32 + i % 2 * 16; }
uint second_of(uint i) { return first_of(i) + 64; }
#endif

#if defined(TYPE_Q2_K) // scales[16] (scale low, min high nibble), quants[64], d, dmin f16
#define BLOCK_BYTES 84
struct Chunk {
    uvec4 q;
    uint s1, s2, d;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * BLOCK_BYTES, n = i / 4 % 2;
    return Chunk(words4_at(w, b + 16 + n * 32 + i % 2 * 16), aligned_word_at(w, b + 8 * n), aligned_word_at(w, b + 8 * n + 4), aligned_word_at(w, b + 80));
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q = b.q >> (i / 2 % 2 * 2);
    uint s1 = byte_of(b.s1, i % 4), s2 = byte_of(b.s2, i % 4);
    vec2 d = unpackHalf2x16(b.d);
    float sum = x1.d * float(int(s1 & 0xf) * dot16_u4(q & 0x03030303u, x1.q)) + x2.d * float(int(s2 & 0xf) * dot16_u4((q >> 4) & 0x03030303u, x2.q));
    float low = x1.d * float(int(s1 >> 4) * x1.sum) + x2.d * float(int(s2 >> 4) * x2.sum);
    return d.x * sum - d.y * low;
}
#endif

#if defined(TYPE_Q3_K) // third bits[32], quants[64], scales[12] of 6 bits, d f16
#define BLOCK_BYTES 110
struct Chunk {
    Sixteen q, h;
    uint s1, s2, top, d; // of the scales' bytes those with their low 4 bits (two scales each) and upper 2 bits (four)
    uint at, odd;        // the bit of s1, s2 and top where the byte begins; 2 where q, h and d begin in the middle of a word
};

#ifdef LONGS
Chunk load_chunk(Row w, uint i)
{
    Chunk b;
    uint n = i / 4 % 2, s = i % 4; // scales 8n + s and 8n + 4 + s
    uint block = i / 8 * BLOCK_BYTES;
    b.q = words4_at(w, block + 32 + n * 32 + i % 2 * 16);
    b.h = words4_at(w, block + i % 2 * 16);
    b.s1 = byte_at(w, block + 96 + s);
    b.s2 = byte_at(w, block + 100 + s);
    b.top = byte_at(w, block + 104 + s);
    b.d = half_at(w, block + 108);
    b.at = b.odd = 0;
    return b;
}
#else
Chunk load_chunk(Row w, uint i)
{
    Chunk b;
    uint n = i / 4 % 2, s = i % 4;
    uint off = i / 8 * BLOCK_BYTES + w.cut;
    b.odd = off & 2;
    b.at = 8 * (s + b.odd) & 31;
    uvec2 block = plus(w.base, off & ~3);
    b.q = sixteen_at(plus(block, 32 + n * 32 + i % 2 * 16));
    b.h = sixteen_at(plus(block, i % 2 * 16));
    Words scales = Words(plus(block, 96 + ((s + b.odd) & 4)));
    b.s1 = scales.w[0];
    b.s2 = scales.w[1];
    b.top = scales.w[2];
    b.d = Words(block).w[27];
    return b;
}
#endif

// three_bits makes bytes of the quants; q2's are shifted left by SECOND.
void three_bits(Chunk b, uint i, out uvec4 q1, out uvec4 q2)
{
    uint n = i / 4 % 2, s = i / 2 % 2;
    uvec4 q = bits_from(b.q, b.odd, 2 * s), h = bits_from(b.h, b.odd, 4 * n + s);
    q1 = (q & 0x03030303u) | (h & 0x01010101u) << 2;
#ifdef LONGS
    q2 = ((q >> 4) & 0x03030303u) | (h & 0x04040404u);
#else
    q2 = (q & 0x30303030u) | (h & 0x04040404u) << 4;
#endif
}

#ifdef LONGS
const int SECOND = 0;
#define DOT_SECOND dot16_u4
#else
const int SECOND = 4;
#define DOT_SECOND dot16
#endif

ivec2 scales_of(Chunk b, uint i)
{
    uint at = b.at + i / 4 % 2 * 4;
    uint top = b.top >> at;
    return ivec2(((b.s1 >> at) & 0xf) | (top & 3) << 4, ((b.s2 >> at) & 0xf) | ((top >> 2) & 3) << 4) - 32;
}

float scale_of(Chunk b) { return half_value(b.d >> (8 * b.odd)); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q1, q2;
    three_bits(b, i, q1, q2);
    ivec2 s = scales_of(b, i);
    float sum = x1.d * float(s.x * (dot16_u4(q1, x1.q) - 4 * x1.sum)) + x2.d * float(s.y * ((DOT_SECOND(q2, x2.q) >> SECOND) - 4 * x2.sum));
    return scale_of(b) * sum;
}
#endif

#if defined(TYPE_Q6_K) // low 4 bits[128], upper 2 bits[64], scales[16] signed, d f16
#define BLOCK_BYTES 210
struct Chunk {
    Sixteen q, h;
    uint s1, s2, d; // scales: words, of which a byte counts
    uint at, odd;   // the bit where it begins; 2 where q, h and d begin in the middle of a word
};

Chunk load_chunk(Row w, uint i)
{
    Chunk b;
    uint n = i / 4 % 2, s = 8 * n + i % 4;
    uint off = i / 8 * BLOCK_BYTES + w.cut;
    b.odd = off & 2;
    b.at = 8 * (s + b.odd) & 31;
#ifdef LONGS
    off -= w.cut;
    b.q = words4_at(w, off + i % 8 * 16);
    b.h = words4_at(w, off + 128 + n * 32 + i % 2 * 16);
    b.s1 = aligned_word_at(w, off + 192 + s);
    b.s2 = aligned_word_at(w, off + 196 + s);
    b.d = aligned_word_at(w, off + 208);
#else
    uvec2 block = plus(w.base, off & ~3);
    b.q = sixteen_at(plus(block, i % 8 * 16));
    b.h = sixteen_at(plus(block, 128 + n * 32 + i % 2 * 16));
    Words scales = Words(plus(block, 192 + ((s + b.odd) & ~3)));
    b.s1 = scales.w[0];
    b.s2 = scales.w[1];
    b.d = Words(block).w[52];
#endif
    return b;
}

void six_bits(Chunk b, uint i, out uvec4 q1, out uvec4 q2)
{
    uvec4 q = bytes_from(b.q, b.odd), h = bits_from(b.h, b.odd, i / 2 % 2 * 2);
    q1 = (q & 0x0f0f0f0fu) | (h & 0x03030303u) << 4;
    q2 = ((q >> 4) & 0x0f0f0f0fu) | (h & 0x30303030u);
}

ivec2 scales_of(Chunk b, uint i) { return ivec2(bitfieldExtract(int(b.s1), int(b.at), 8), bitfieldExtract(int(b.s2), int(b.at), 8)); }
float scale_of(Chunk b) { return half_value(b.d >> (8 * b.odd)); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uvec4 q1, q2;
    six_bits(b, i, q1, q2);
    ivec2 s = scales_of(b, i);
    float sum = x1.d * float(s.x * (dot16_u6(q1, x1.q) - 32 * x1.sum)) + x2.d * float(s.y * (dot16_u6(q2, x2.q) - 32 * x2.sum));
    return scale_of(b) * sum;
}
#endif
