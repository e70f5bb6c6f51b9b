// Weight rows: where one begins, words at addresses that are only even, and
// dequant8 of the type that is compiled in (TYPE_Q4_K …).
//
// Every types_*.glsl gives BLOCK (values), BLOCK_BYTES and
//   void dequant8(Row r, uint k, out float v[8])   values k … k+7 of the row, k a multiple of 8
// with ggml's arithmetic in float32, operation by operation, never contracted.

// Row is a row of W: its address rounded down to a word, and what was cut off: 0 or 2 bytes, of MXFP4 any.
// The address is no pointer: SwiftShader crashes when it compiles an array of structs that hold one.
struct Row {
    uvec2 base;
    uint cut;
};

uint half_at(Row r, uint off) // 16 bits at an even offset
{
    off += r.cut;
    return (Words(r.base).w[off >> 2] >> ((off & 2) << 3)) & 0xffff;
}

// word_at reads 32 bits at an even offset, touching only words that hold them.
uint word_at(Row r, uint off)
{
    off += r.cut;
    uint lo = Words(r.base).w[off >> 2];
    uint hi = Words(r.base).w[(off + 2) >> 2];
    return (off & 2) == 0 ? lo : (lo >> 16) | (hi << 16);
}

// word_at_any is word_at for any offset.
uint word_at_any(Row r, uint off)
{
    off += r.cut;
    uint lo = Words(r.base).w[off >> 2];
    uint hi = Words(r.base).w[(off + 3) >> 2], s = 8 * (off & 3);
    return s == 0 ? lo : (lo >> s) | (hi << (32 - s));
}

uint byte_of(uint w, uint i) { return (w >> (8 * i)) & 0xff; }

uint byte_at(Row r, uint off)
{
    off += r.cut;
    return (Words(r.base).w[off >> 2] >> ((off & 3) << 3)) & 0xff;
}

int sbyte_of(uint w, uint i) { return bitfieldExtract(int(w), int(8 * i), 8); }

float half_value(uint h) { return unpackHalf2x16(h).x; }

#include "types_float.glsl"
#include "types_legacy.glsl"
#include "types_k.glsl"
#include "types_iq.glsl"

Row weight_row(uvec2 base, uint row, uint K)
{
    uvec2 at = advance(base, row, K / BLOCK * BLOCK_BYTES);
    return Row(uvec2(at.x & ~3u, at.y), at.x & 3u);
}
