// Weights of super-blocks by parts, for mul_mat_vec_int8 and mul_mat_vec_persistent. A part is 64 values, a quarter of a block; a lane's parts are all the same
// quarter, as TEAM is a multiple of 8, and stand at a constant distance, so that addresses are made once a row. Types give
//   Weights weights_at(uvec2 row)          where the lane's first part is
//   Part load_part(Weights w, uint u)      the bytes of its u-th part, loads alone
//   X64 load_x64(uvec2 x, uvec2 s, uint u) X of the u-th part, whose first is at x and its scales at s
//   uint first_value()                     where the first part begins in its row
//   float dot_part(Part b, Weights w, X64 x)  w: the row's, of no other use than what its address leaves to do

const uint APART = TEAM / 4; // blocks from a lane's part to its next

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K) || defined(TYPE_IQ4_XS) // two groups of 32, low nibbles and high
struct X64 {
    uvec4 q[4], s; // s: scale, sums, scale, sums
};

uint first_value() { return member * 64; }

X64 load_x64(uvec2 x, uvec2 s, uint u)
{
    X64 v;
    [[unroll]] for (uint i = 0; i < 4; i++)
        v.q[i] = Words4(x).w[u * TEAM * 4 + i];
    v.s = Words4(s).w[u * TEAM];
    return v;
}
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K) // each group with a scale and a min of 6 bits
#ifdef TYPE_Q4_K
#define BLOCK_BYTES 144
#else
#define BLOCK_BYTES 176
#endif
const uint STEP = APART * (BLOCK_BYTES / 16); // loads of 16 bytes

struct Weights {
    uvec2 head, quants;
};

struct Part {
    uvec4 head, q0, q1;
#ifdef TYPE_Q5_K
    uvec4 h0, h1;
#endif
};

Weights weights_at(uvec2 row)
{
    uvec2 block = advance(row, member / 4, BLOCK_BYTES);
    return Weights(block, advance(block, 1, BLOCK_BYTES - 128 + member % 4 * 32));
}

Part load_part(Weights w, uint u)
{
    Part b;
    b.head = Words4(w.head).w[u * STEP];
    b.q0 = Words4(w.quants).w[u * STEP];
    b.q1 = Words4(w.quants).w[u * STEP + 1];
#ifdef TYPE_Q5_K
    b.h0 = Words4(w.head).w[u * STEP + 1];
    b.h1 = Words4(w.head).w[u * STEP + 2];
#endif
    return b;
}

// both_sums is the sum of a block's 32 integers.
int both_sums(uint s) { return bitfieldExtract(int(s), 0, 16) + (int(s) >> 16); }

float dot_part(Part b, Weights w, X64 x)
{
    uint j = member % 4, at = j % 2 * 16; // the quarter, and where its scales and mins are in their words
    bool late = j >= 2;
    uint six = late ? 0x0f0fu : 0x3f3fu, top = late ? 0x3030u : 0;
    uint sc = (((late ? b.head.w : b.head.y) >> at) & six) | ((b.head.y >> at >> 2) & top);
    uint m = (((late ? b.head.w >> 4 : b.head.z) >> at) & six) | ((b.head.z >> at >> 2) & top);
#ifdef TYPE_Q4_K
    uvec4 low0 = b.q0 & 0x0f0f0f0fu, low1 = b.q1 & 0x0f0f0f0fu, high0 = (b.q0 >> 4) & 0x0f0f0f0fu, high1 = (b.q1 >> 4) & 0x0f0f0f0fu;
#else
    uvec4 h0 = b.h0 >> (2 * j), h1 = b.h1 >> (2 * j);
    uvec4 low0 = (b.q0 & 0x0f0f0f0fu) | (h0 & 0x01010101u) << 4, low1 = (b.q1 & 0x0f0f0f0fu) | (h1 & 0x01010101u) << 4;
    uvec4 high0 = ((b.q0 >> 4) & 0x0f0f0f0fu) | (h0 & 0x02020202u) << 3, high1 = ((b.q1 >> 4) & 0x0f0f0f0fu) | (h1 & 0x02020202u) << 3;
#endif
    int dot0 = dot16(low0, x.q[0]) + dot16(low1, x.q[1]), dot1 = dot16(high0, x.q[2]) + dot16(high1, x.q[3]);
    vec2 d = unpackHalf2x16(b.head.x), xd = vec2(uintBitsToFloat(x.s.x), uintBitsToFloat(x.s.z));
    vec2 sum = xd * vec2(int(sc & 0xff) * dot0, int(sc >> 8) * dot1);
    vec2 low = xd * vec2(int(m & 0xff) * both_sums(x.s.y), int(m >> 8) * both_sums(x.s.w));
    return d.x * (sum.x + sum.y) - d.y * (low.x + low.y);
}
#endif

#if defined(TYPE_Q3_K) || defined(TYPE_Q6_K) // four runs of 16, 32 values apart
struct Words5 {
    uint w[5];
};

struct X64 {
    uvec4 q[4];
    uvec2 s[4];
};

uint first_value() { return member / 4 * 256 + member / 2 % 2 * 128 + member % 2 * 16; }

Words5 five(uvec2 p, uint at)
{
    Words5 v;
    [[unroll]] for (uint i = 0; i < 5; i++)
        v.w[i] = Words(p).w[at + i];
    return v;
}

X64 load_x64(uvec2 x, uvec2 s, uint u)
{
    X64 v;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        v.q[i] = Words4(x).w[u * TEAM * 4 + 2 * i];
        v.s[i] = Words2(s).w[u * TEAM * 2 + i];
    }
    return v;
}

uint from_bit(uint lo, uint hi, uint cut) { return cut == 0 ? lo : (lo >> 16) | (hi << 16); }

uvec4 four(Words5 v, uint cut)
{
    return uvec4(from_bit(v.w[0], v.w[1], cut), from_bit(v.w[1], v.w[2], cut), from_bit(v.w[2], v.w[3], cut), from_bit(v.w[3], v.w[4], cut));
}

// ones_of is the sum of the run's integers, from what stands behind the block's scale.
int ones_of(uint s) { return bitfieldExtract(int(s), int(16 * (member % 2)), 16); }
#endif

#if defined(TYPE_Q3_K) // third bits[32], quants[64], scales[12] of 6 bits, d f16
#define BLOCK_BYTES 110
const uint STEP = APART * BLOCK_BYTES / 4; // words: a multiple of 2 blocks

struct Weights { // rounded down to a word; what was cut off, in bits: 0 or 16
    uvec2 third, quants, scales;
    uint cut;
};

struct Part {
    Words5 q, h;
    uint s[4]; // scales, d
};

Weights weights_at(uvec2 row)
{
    uvec2 block = advance(row, member / 4, BLOCK_BYTES);
    uint cut = block.x & 2, n = member / 2 % 2, h = member % 2;
    block.x &= ~3u;
    return Weights(advance(block, 1, h * 16), advance(block, 1, 32 + n * 32 + h * 16), advance(block, 1, 96), 8 * cut);
}

Part load_part(Weights w, uint u)
{
    Part b;
    b.q = five(w.quants, u * STEP);
    b.h = five(w.third, u * STEP);
    [[unroll]] for (uint i = 0; i < 4; i++)
        b.s[i] = Words(w.scales).w[u * STEP + i];
    return b;
}

// Scale 8n + 2r + h, of run r: its low 4 bits are nibble n of byte 2r + h, its upper ones bits 4n + 2 (r / 2) of byte 8 + 2 (r % 2) + h.
float dot_part(Part b, Weights w, X64 x)
{
    uint at = 4 * (member / 2 % 2);
    uvec4 q0 = four(b.q, w.cut), third = four(b.h, w.cut) >> at, q[4];
    q[0] = (q0 & 0x03030303u) | ((third << 2) & 0x04040404u);
    q[1] = ((q0 >> 2) & 0x03030303u) | ((third << 1) & 0x04040404u);
    q[2] = ((q0 >> 4) & 0x03030303u) | (third & 0x04040404u);
    q[3] = ((q0 >> 6) & 0x03030303u) | ((third >> 1) & 0x04040404u);
    at += 8 * (member % 2);
    uint upper = from_bit(b.s[2], b.s[3], w.cut) >> at;
    uint s[2] = {((from_bit(b.s[0], b.s[1], w.cut) >> at) & 0x000f000fu) | ((upper << 4) & 0x00300030u),
        ((from_bit(b.s[1], b.s[2], w.cut) >> at) & 0x000f000fu) | ((upper << 2) & 0x00300030u)};
    float sum = 0;
    [[unroll]] for (uint r = 0; r < 4; r++) {
        int scale = int(r % 2 == 0 ? s[r / 2] & 0xffff : s[r / 2] >> 16) - 32;
        sum += uintBitsToFloat(x.s[r].x) * float(scale * (dot16(q[r], x.q[r]) - 4 * ones_of(x.s[r].y)));
    }
    return unpackHalf2x16(b.s[3] >> w.cut).x * sum;
}
#endif

#if defined(TYPE_Q6_K) // low 4 bits[128], upper 2 bits[64], scales[16] signed, d f16
#define BLOCK_BYTES 210
const uint STEP = APART * BLOCK_BYTES / 4; // words: a multiple of 2 blocks

struct Weights { // rounded down to a word; what was cut off, in bits: 0 or 16
    uvec2 low, high, scales, d;
    uint cut;
};

struct Part {
    Words5 q0, q1, h;
    uint s[3], d;
};

Weights weights_at(uvec2 row)
{
    uvec2 block = advance(row, member / 4, BLOCK_BYTES);
    uint cut = block.x & 2, n = member / 2 % 2, h = member % 2;
    block.x &= ~3u;
    return Weights(advance(block, 1, n * 64 + h * 16), advance(block, 1, 128 + n * 32 + h * 16), advance(block, 1, 192 + n * 8), advance(block, 1, 208), 8 * cut);
}

Part load_part(Weights w, uint u)
{
    Part b;
    b.q0 = five(w.low, u * STEP);
    b.q1 = five(w.low, u * STEP + 8);
    b.h = five(w.high, u * STEP);
    [[unroll]] for (uint i = 0; i < 3; i++)
        b.s[i] = Words(w.scales).w[u * STEP + i];
    b.d = Words(w.d).w[u * STEP];
    return b;
}

float dot_part(Part b, Weights w, X64 x)
{
    uint half_of = member % 2;
    uvec4 q0 = four(b.q0, w.cut), q1 = four(b.q1, w.cut), h = four(b.h, w.cut), q[4];
    q[0] = (q0 & 0x0f0f0f0fu) | (h & 0x03030303u) << 4;
    q[1] = (q1 & 0x0f0f0f0fu) | (h & 0x0c0c0c0cu) << 2;
    q[2] = ((q0 >> 4) & 0x0f0f0f0fu) | (h & 0x30303030u);
    q[3] = ((q1 >> 4) & 0x0f0f0f0fu) | ((h >> 2) & 0x30303030u);
    uint s[2] = {from_bit(b.s[0], b.s[1], w.cut), from_bit(b.s[1], b.s[2], w.cut)};
    float sum = 0;
    [[unroll]] for (uint r = 0; r < 4; r++) {
        int scale = bitfieldExtract(int(s[r / 2]) >> (8 * half_of), int(r % 2 * 16), 8);
        sum += uintBitsToFloat(x.s[r].x) * float(scale * (dot16(q[r], x.q[r]) - 32 * ones_of(x.s[r].y)));
    }
    return unpackHalf2x16(b.d >> w.cut).x * sum;
}
#endif

#if defined(TYPE_IQ4_XS) // d f16, upper 2 bits of 8 scales u16, their low 4 bits[4], quants[128]
#define BLOCK_BYTES 136
const uint STEP = APART * BLOCK_BYTES / 8; // loads of 8 bytes
const uint NIBBLES = 0x0f0f0f0fu;
#include "levels.glsl"

struct Weights {
    uvec2 head, quants;
};

struct Part {
    uvec2 head, q[4];
};

Weights weights_at(uvec2 row)
{
    uvec2 block = advance(row, member / 4, BLOCK_BYTES);
    return Weights(block, advance(block, 1, 8 + member % 4 * 32));
}

Part load_part(Weights w, uint u)
{
    Part b;
    b.head = Words2(w.head).w[u * STEP];
    [[unroll]] for (uint i = 0; i < 4; i++)
        b.q[i] = Words2(w.quants).w[u * STEP + i];
    return b;
}

float dot_part(Part b, Weights w, X64 x)
{
    uint j = member % 4, low = b.head.y >> (8 * j), top = b.head.x >> (16 + 4 * j);
    float sum = 0;
    [[unroll]] for (uint g = 0; g < 2; g++) {
        uvec4 first, second;
        levels_of(uvec4(b.q[2 * g], b.q[2 * g + 1]), first, second);
        int scale = int(((low >> (4 * g)) & 0xf) | ((top >> (2 * g)) & 3) << 4) - 32;
        sum += uintBitsToFloat(x.s[2 * g]) * float(scale * (dot16(first, x.q[2 * g]) + dot16(second, x.q[2 * g + 1])));
    }
    return unpackHalf2x16(b.head.x).x * sum;
}
#endif
