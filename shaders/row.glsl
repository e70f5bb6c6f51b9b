// Rows of weights: where one begins, and loads at addresses that are only even.

#ifdef LONGS
const uint ROUND = 7; // to what loads begin at
#else
const uint ROUND = 3;
#endif

// Row is a row of W: its address rounded down, and what was cut off: an even number of bytes, of MXFP4 any.
// The address is no pointer: SwiftShader crashes when it compiles an array of structs that hold one.
struct Row {
    uvec2 base;
    uint cut;
};

Row row_at(uvec2 at) { return Row(uvec2(at.x & ~ROUND, at.y), at.x & ROUND); }

const uint NIBBLES = 0x0f0f0f0fu;

uint byte_of(uint w, uint i) { return (w >> (8 * i)) & 0xff; }
int sbyte_of(uint w, uint i) { return bitfieldExtract(int(w), int(8 * i), 8); }
float half_value(uint h) { return unpackHalf2x16(h).x; }

// plus is base + off. From there on a word of a known place costs a load nothing; an index that is computed costs every load.
uvec2 plus(uvec2 base, uint off)
{
    uint carry, lo = uaddCarry(base.x, off, carry);
    return uvec2(lo, base.y + carry);
}

uint half_at(Row r, uint off) // 16 bits at an even offset
{
    off += r.cut;
    return (Words(r.base).w[off / 4] >> (8 * (off & 2))) & 0xffff;
}

uint byte_at(Row r, uint off)
{
    off += r.cut;
    return (Words(r.base).w[off / 4] >> (8 * (off & 3))) & 0xff;
}

// word_at reads 32 bits at an even offset, touching only words that hold them.
uint word_at(Row r, uint off)
{
    off += r.cut;
    uint lo = Words(r.base).w[off >> 2];
    uint hi = Words(r.base).w[(off + 2) >> 2];
    return (off & 2) == 0 ? lo : (lo >> 16) | (hi << 16);
}

// words2_at is word_at for 8 bytes.
uvec2 words2_at(Row r, uint off)
{
    off += r.cut;
    Words p = Words(plus(r.base, off & ~3));
    uvec2 lo = uvec2(p.w[0], p.w[1]), up = uvec2(lo.y, Words(r.base).w[(off + 6) / 4]);
    return (off & 2) == 0 ? lo : (lo >> 16) | (up << 16);
}

#ifndef LONGS
// words4_at is word_at for 16 bytes.
uvec4 words4_at(Row r, uint off)
{
    off += r.cut;
    Words p = Words(r.base);
    uint i = off / 4;
    bool aligned = (off & 2) == 0;
    uvec4 lo = uvec4(p.w[i], p.w[i + 1], p.w[i + 2], p.w[i + 3]);
    uint last = p.w[(off + 14) / 4];
    uvec4 up = uvec4(lo.yzw, last);
    return aligned ? lo : (lo >> 16) | (up << 16);
}
#endif
