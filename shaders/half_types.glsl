// Chunks of int8_types.glsl for products in halves. A value of a chunk is s.x * byte + s.y, its byte unsigned; parts gives
// the bytes and the s of the chunk's two runs of 16.

const uint SIGNS = 0x80808080u; // makes signed bytes unsigned ones, 128 more

#if defined(TYPE_Q4_0)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    uvec4 q = bytes_of(b.q);
    q1 = q & NIBBLES;
    q2 = (q >> 4) & NIBBLES;
    s1 = s2 = half_value(head_of(b.q)) * vec2(1, -8);
}
#endif

#if defined(TYPE_Q4_1)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    q1 = b.q & NIBBLES;
    q2 = (b.q >> 4) & NIBBLES;
    s1 = s2 = unpackHalf2x16(b.dm);
}
#endif

#if defined(TYPE_Q5_0)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    uvec4 q = bytes_of(b.q);
    uint h = fifth_of(b);
    q1 = (q & NIBBLES) | fifths(h);
    q2 = ((q >> 4) & NIBBLES) | fifths(h >> 16);
    s1 = s2 = scale_of(b) * vec2(1, -16);
}
#endif

#if defined(TYPE_Q5_1)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    q1 = (b.q & NIBBLES) | fifths(b.h);
    q2 = ((b.q >> 4) & NIBBLES) | fifths(b.h >> 16);
    s1 = s2 = unpackHalf2x16(b.dm);
}
#endif

#if defined(TYPE_Q8_0)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    q1 = bytes_of(b.q1) ^ SIGNS;
    q2 = second_bytes(b) ^ SIGNS;
    s1 = s2 = half_value(head_of(b.q1)) * vec2(1, -128);
}
#endif

#if defined(TYPE_Q2_K)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    uvec4 q = b.q >> (i / 2 % 2 * 2);
    q1 = q & 0x03030303u;
    q2 = (q >> 4) & 0x03030303u;
    uint sm1 = byte_of(b.s1, i % 4), sm2 = byte_of(b.s2, i % 4);
    vec2 d = unpackHalf2x16(b.d) * vec2(1, -1);
    s1 = d * vec2(sm1 & 0xf, sm1 >> 4);
    s2 = d * vec2(sm2 & 0xf, sm2 >> 4);
}
#endif

#if defined(TYPE_Q3_K)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    three_bits(b, i, q1, q2);
    vec2 s = scale_of(b) * vec2(scales_of(b, i));
    s1 = s.x * vec2(1, -4);
    s2 = s.y * vec2(1.0 / (1 << SECOND), -4);
}
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    uint j = i % 8 / 2;
    q1 = b.q & 0x0f0f0f0fu;
    q2 = (b.q >> 4) & 0x0f0f0f0fu;
#ifdef TYPE_Q5_K
    uvec4 h = b.h >> (2 * j);
    q1 |= (h & 0x01010101u) << 4;
    q2 |= (h & 0x02020202u) << 3;
#endif
    uvec2 sm = pair_scales(b.head.yzw, j);
    vec2 d = unpackHalf2x16(b.head.x) * vec2(1, -1);
    s1 = d * vec2(sm & 0xff);
    s2 = d * vec2((sm >> 8) & 0xff);
}
#endif

#if defined(TYPE_Q6_K)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    six_bits(b, i, q1, q2);
    vec2 s = scale_of(b) * vec2(scales_of(b, i));
    s1 = s.x * vec2(1, -32);
    s2 = s.y * vec2(1, -32);
}
#endif

#if defined(TYPE_IQ4_NL) || defined(TYPE_IQ4_XS) || defined(TYPE_MXFP4)
void parts(Chunk b, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
#if defined(TYPE_IQ4_NL)
    levels_of(bytes_of(b.q), q1, q2);
    float d = half_value(head_of(b.q));
#elif defined(TYPE_MXFP4)
    levels_of(quants_of(b), q1, q2);
    float d = scale_of(b);
#else
    levels_of(b.q, q1, q2);
    uint s = i % 8;
    int scale = int(((b.head.y >> (4 * s)) & 0xf) | ((b.head.x >> (16 + 2 * s)) & 3) << 4) - 32;
    float d = half_value(b.head.x & 0xffff) * float(scale);
#endif
#ifdef TYPE_MXFP4
    s1 = s2 = d * vec2(1, -LEVEL_ZERO);
#else
    q1 ^= SIGNS;
    q2 ^= SIGNS;
    s1 = s2 = d * vec2(1, -128);
#endif
}
#endif

uint two_halves(uint q, uint i, vec2 s)
{
    vec2 y = vec2(byte_of(q, i), byte_of(q, i + 1));
    return packHalf2x16(y * s.x + s.y);
}

// eight gives the values of 8 bytes as halves.
uvec4 eight(uint q1, uint q2, vec2 s)
{
    return uvec4(two_halves(q1, 0, s), two_halves(q1, 2, s), two_halves(q2, 0, s), two_halves(q2, 2, s));
}

// What of a byte is nearest the middle of its values: less that, they are small.
#if defined(TYPE_Q2_K)
const uint CENTRE = 2;
#elif defined(TYPE_Q3_K)
const uint CENTRE = 4;
#elif defined(TYPE_Q4_0) || defined(TYPE_Q4_1) || defined(TYPE_Q4_K)
const uint CENTRE = 8;
#elif defined(TYPE_Q5_0) || defined(TYPE_Q5_1) || defined(TYPE_Q5_K)
const uint CENTRE = 16;
#elif defined(TYPE_Q6_K)
const uint CENTRE = 32;
#elif defined(ZERO) && ZERO != 0
const uint CENTRE = ZERO;
#else
const uint CENTRE = 128;
#endif

// centred gives s of bytes less CENTRE, each half twice.
f16vec4 centred(vec2 s) { return f16vec4(vec2(s.x), vec2(s.y + float(CENTRE) * s.x)); }

// two_of gives bytes i and i+1 of q, i even, as halves: 1024 + byte is one whose lowest bits the byte is.
uint two_of(uint q, uint i, f16vec4 s)
{
    uint two = i == 0 ? (q & 0xff) | ((q << 8) & 0xff0000) : ((q >> 16) & 0xff) | ((q >> 8) & 0xff0000);
    f16vec2 y = unpackFloat2x16(two | 0x64006400) - f16vec2(1024 + CENTRE); // exact
    return packFloat2x16(fma(y, s.xy, s.zw));
}

// eight_halves is eight by arithmetic of halves: rounded are the scale, the offset and the value.
uvec4 eight_halves(uint q1, uint q2, f16vec4 s)
{
    return uvec4(two_of(q1, 0, s), two_of(q1, 2, s), two_of(q2, 0, s), two_of(q2, 2, s));
}
