// Weights for 8-bit products. Every int8_*.glsl gives
//   Row w_row(uvec2 w, uint row)           a row of the matrix at w
//   Chunk load_chunk(Row w, uint i)        the bytes of chunk i, loads alone
//   uint first_of(uint i), second_of(i)     where its two runs of 16 values lie in the row
//   float dot_chunk(Chunk b, uint i, X16 x1, X16 x2)

#include "row.glsl"

#ifdef LONGS
// funnel is 64 bits from bit s of lo on, which is below 64.
uint64_t funnel(uint64_t lo, uint64_t hi, uint s) { return (lo >> s) | ((hi << 1) << (63 - s)); }

// words4_at reads 16 bytes at an even offset, touching only longs that hold them.
uvec4 words4_at(Row r, uint off)
{
    off += r.cut;
    Longs p = Longs(r.base);
    uint i = off / 8, s = off % 8 * 8;
    uint64_t mid = p.w[i + 1];
    return uvec4(unpackUint2x32(funnel(p.w[i], mid, s)), unpackUint2x32(funnel(mid, p.w[(off + 14) / 8], s)));
}

// head4_at reads 2 bytes and the 16 behind them.
uvec4 head4_at(Row r, uint off, out uint head)
{
    off += r.cut;
    Longs p = Longs(r.base);
    uint i = off / 8, s = off % 8 * 8;
    uint64_t mid = p.w[i + 1], last = p.w[i + 2];
    uint64_t one = funnel(p.w[i], mid, s), two = funnel(mid, last, s);
    head = uint(one) & 0xffff;
    return uvec4(unpackUint2x32(funnel(one, two, 16)), unpackUint2x32(funnel(two, last >> s, 16)));
}

// Sixteen are 16 bytes at an even offset as they are loaded: where `odd` is 2 they begin in the middle of a word. bits_from gives
// the bytes shifted right by n < 8; their upper n bits are of others, and so is the topmost one of all.
#define Sixteen uvec4
uvec4 bits_from(Sixteen b, uint odd, uint n) { return b >> n; }
uvec4 bytes_from(Sixteen b, uint odd) { return b; }

// Headed are 2 bytes and the 16 behind them.
struct Headed {
    uvec4 q;
    uint head;
};

Headed headed_at(Row r, uint off)
{
    Headed b;
    b.q = head4_at(r, off, b.head);
    return b;
}

uint head_of(Headed b) { return b.head; }
uvec4 bytes_of(Headed b) { return b.q; }
#else
struct Sixteen {
    uvec4 w;
    uint next;
};

// sixteen_at reads two bytes more, before or behind.
Sixteen sixteen_at(uvec2 at)
{
    Words p = Words(at);
    return Sixteen(uvec4(p.w[0], p.w[1], p.w[2], p.w[3]), p.w[4]);
}

uvec4 bits_from(Sixteen b, uint odd, uint n)
{
    uvec4 up = uvec4(b.w.yzw, b.next);
    return (b.w >> (8 * odd + n)) | (up << mix(31, 16 - n, odd != 0));
}

uvec4 bytes_from(Sixteen b, uint odd)
{
    uvec4 up = uvec4(b.w.yzw, b.next);
    return mix(b.w, (b.w >> 16) | (up << 16), bvec4(odd != 0));
}

struct Headed {
    Sixteen words;
    uint odd;
};

Headed headed_at(Row r, uint off)
{
    off += r.cut;
    return Headed(sixteen_at(plus(r.base, off & ~3)), off & 2);
}

uint head_of(Headed b) { return (b.words.w.x >> (8 * b.odd)) & 0xffff; }

uvec4 bytes_of(Headed b)
{
    uvec4 up = uvec4(b.words.w.yzw, b.words.next);
    return mix((b.words.w >> 16) | (up << 16), up, bvec4(b.odd != 0));
}
#endif

// aligned_word_at reads 32 bits at a multiple of 4.
uint aligned_word_at(Row r, uint off) { return Words(r.base).w[(off + r.cut) / 4]; }

void init_types(); // fills a table in shared memory, if the type has one

#include "int8_legacy.glsl"
#include "int8_k.glsl"
#include "int8_iq.glsl"
#define OF_BYTES
#include "run_types.glsl"

Row w_row(uvec2 w, uint row) { return row_at(advance(w, row, a.K / BLOCK * BLOCK_BYTES)); }

#if !defined(SHARED_TABLE)
void init_types() {}
#endif
