// IQ4_NL, IQ4_XS and MXFP4: 4 bits choose one of 16 uneven levels.

#if defined(TYPE_IQ4_NL) || defined(TYPE_IQ4_XS) || defined(TYPE_MXFP4)
#include "levels.glsl"

#ifdef TYPE_MXFP4
#define DOT_LEVELS dot16_u5
#else
#define DOT_LEVELS dot16
#endif

int dot_levels(uvec4 q, X16 x1, X16 x2)
{
    uvec4 low, high;
    levels_of(q, low, high);
    return DOT_LEVELS(low, x1.q) + DOT_LEVELS(high, x2.q) - LEVEL_ZERO * (x1.sum + x2.sum);
}
#endif

#if defined(TYPE_IQ4_NL) // d f16, quants[16]
#define BLOCK_BYTES 18
struct Chunk {
    Headed q;
};

Chunk load_chunk(Row w, uint i) { return Chunk(headed_at(w, i * BLOCK_BYTES)); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return half_value(head_of(b.q)) * x1.d * float(dot_levels(bytes_of(b.q), x1, x2));
}
#endif

#if defined(TYPE_IQ4_XS) // d f16, upper 2 bits of 8 scales u16, their low 4 bits[4], quants[128]
#define BLOCK 256
#define BLOCK_BYTES 136
uint first_of(uint i) { return i * 32; }
uint second_of(uint i) { return i * 32 + 16; }

struct Chunk {
    uvec4 q;
    uvec2 head;
};

Chunk load_chunk(Row w, uint i)
{
    uint b = i / 8 * 17, q = b + 1 + i % 8 * 2;
    return Chunk(uvec4(load8(w.base, q), load8(w.base, q + 1)), load8(w.base, b));
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    uint s = i % 8;
    int scale = int(((b.head.y >> (4 * s)) & 0xf) | ((b.head.x >> (16 + 2 * s)) & 3) << 4) - 32;
    return half_value(b.head.x & 0xffff) * x1.d * float(scale * dot_levels(b.q, x1, x2));
}
#endif

#if defined(TYPE_MXFP4) // exponent u8, quants[16]
#define BLOCK_BYTES 17
struct Chunk {
    uvec4 w;
    uint next, at; // the word behind w, and the bit of w where the exponent begins
};

Chunk load_chunk(Row w, uint i)
{
    uint off = i * BLOCK_BYTES + w.cut;
    Words p = Words(plus(w.base, off & ~3));
    return Chunk(uvec4(p.w[0], p.w[1], p.w[2], p.w[3]), p.w[4], 8 * (off & 3));
}

uvec4 quants_of(Chunk b)
{
    uvec4 up = uvec4(b.w.yzw, b.next);
    return mix((b.w >> ((b.at + 8) & 31)) | (up << (24 - b.at)), up, bvec4(b.at == 24));
}

// block_scale is 2^(e-128), in two factors of which none is a denormal, lest the driver take it for 0.
float block_scale(uint e)
{
    float rest = e > 1 ? 1 : e == 1 ? 0.5 : 0.25;
    return uintBitsToFloat((max(e, 2) - 1) << 23) * rest;
}

float scale_of(Chunk b) { return block_scale((b.w.x >> b.at) & 0xff); }

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return scale_of(b) * x1.d * float(dot_levels(quants_of(b), x1, x2));
}
#endif
