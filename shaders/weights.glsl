// Weight rows: where one begins, words at addresses that are only even, and
// dequant8 of the type that is compiled in (TYPE_Q4_K …).
//
// Every types_*.glsl gives BLOCK (values), BLOCK_BYTES and
//   void dequant8(Row r, uint k, out float v[8])   values k … k+7 of the row, k a multiple of 8
// with ggml's arithmetic in float32, operation by operation, never contracted.

#include "row.glsl"

// word_at_any is word_at for any offset.
uint word_at_any(Row r, uint off)
{
    off += r.cut;
    uint lo = Words(r.base).w[off >> 2];
    uint hi = Words(r.base).w[(off + 3) >> 2], s = 8 * (off & 3);
    return s == 0 ? lo : (lo >> s) | (hi << (32 - s));
}

#include "types_float.glsl"
#include "types_legacy.glsl"
#include "types_k.glsl"
#include "types_iq.glsl"
#include "run_types.glsl"

Row weight_row(uvec2 base, uint row, uint K) { return row_at(advance(base, row, K / BLOCK * BLOCK_BYTES)); }
