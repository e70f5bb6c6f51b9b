// IQ4_NL, IQ4_XS and MXFP4: 4 bits choose one of 16 uneven levels.

#if defined(TYPE_IQ4_NL) || defined(TYPE_IQ4_XS) || defined(TYPE_MXFP4)
#ifdef TYPE_MXFP4
// level is twice a 4-bit float: 0 1 2 3 | 4 6 8 12, and the same below zero.
uint level(uint q)
{
    uint w = q < 8 ? (q < 4 ? 0x03020100u : 0x0c080604u) : (q < 12 ? 0xfdfeff00u : 0xf4f8fafcu);
    return byte_of(w, q & 3);
}
#else
// level looks q up in {-127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113}.
uint level(uint q)
{
    uint w = q < 8 ? (q < 4 ? 0xbfad9881u : 0xf6eaddcfu) : (q < 12 ? 0x26190d01u : 0x71594535u);
    return byte_of(w, q & 3);
}
#endif

#ifndef BYTES_ALONE
#define LEVELS
// levels of a byte: its low nibble's in bits 0–7, its high nibble's in bits 16–23.
shared uint levels[256];

void init_types()
{
    for (uint i = gl_LocalInvocationID.x; i < 256; i += LANES)
        levels[i] = level(i & 0xf) | level(i >> 4) << 16;
    barrier();
}

// look_up gives the levels of four bytes' low nibbles and of their high ones.
uvec2 look_up(uint w)
{
    uint one = levels[w & 0xff] | levels[(w >> 8) & 0xff] << 8;
    uint two = levels[(w >> 16) & 0xff] | levels[w >> 24] << 8;
    return uvec2((one & 0xffff) | two << 16, one >> 16 | (two & 0xffff0000u));
}

#else
uvec2 look_up(uint w)
{
    uvec2 v = uvec2(0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        v |= uvec2(level((w >> (8 * i)) & 0xf), level((w >> (8 * i + 4)) & 0xf)) << (8 * i);
    return v;
}
#endif

int dot_levels(uvec4 q, uvec4 x1, uvec4 x2)
{
    uvec4 v1, v2;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uvec2 v = look_up(q[i]);
        v1[i] = v.x;
        v2[i] = v.y;
    }
    return dot16(v1, x1) + dot16(v2, x2);
}
#endif

#if defined(TYPE_IQ4_NL) // d f16, quants[16]
#define BLOCK_BYTES 18
struct Chunk {
    uvec4 q;
    uint d;
};

Chunk load_chunk(Row w, uint i)
{
    Chunk b;
    b.q = head4_at(w, i * BLOCK_BYTES, b.d);
    return b;
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return half_value(b.d) * x1.d * float(dot_levels(b.q, x1.q, x2.q));
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
    return half_value(b.head.x & 0xffff) * x1.d * float(scale * dot_levels(b.q, x1.q, x2.q));
}
#endif

#if defined(TYPE_MXFP4) // exponent u8, quants[16]
#define BLOCK_BYTES 17
struct Chunk {
    uvec4 q;
    uint e;
};

Chunk load_chunk(Row w, uint i)
{
    uint off = i * BLOCK_BYTES + w.cut, at = off / 4, s = 8 * (off & 3);
    Words p = Words(w.base);
    uvec4 lo = uvec4(p.w[at], p.w[at + 1], p.w[at + 2], p.w[at + 3]), hi = uvec4(lo.yzw, p.w[at + 4]);
    return Chunk(s == 24 ? hi : (lo >> (s + 8)) | (hi << (24 - s)), (lo.x >> s) & 0xff);
}

// block_scale is 2^(e-128), in two factors of which none is a denormal, lest the driver take it for 0.
float block_scale(uint e)
{
    float rest = e > 1 ? 1 : e == 1 ? 0.5 : 0.25;
    return uintBitsToFloat((max(e, 2) - 1) << 23) * rest;
}

float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)
{
    return block_scale(b.e) * x1.d * float(dot_levels(b.q, x1.q, x2.q));
}
#endif
