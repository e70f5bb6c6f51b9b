#version 460
// kv_append: stores K and V of each row at its position in the paged cache. One lane per pair of
// values: a pair is one word of F16. Of blocks one lane per 4 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 K, V, Pages, Pos, Seq;
    uint Rows, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, KStride, VStride, pad0;
} a;

#include "kv.glsl"
#include "kv_put.glsl"

#ifdef BLOCKS
#include "kv_put_blocks.glsl"

void main()
{
    uint ofKey = row_lanes(a.KeyLen), keys = a.HeadsKV * ofKey, ofVal = row_lanes(a.ValLen), all = keys + a.HeadsKV * ofVal;
    uint row = min(item() / all, a.Rows - 1), t = item() % all;
    bool isKey = t < keys;
    uint len = isKey ? a.KeyLen : a.ValLen, head = isKey ? t / ofKey : (t - keys) / ofVal;
    t = isKey ? t % ofKey : (t - keys) % ofVal;
    bool there = item() / all < a.Rows && 4 * t < len;
    Floats src = Floats(advance(isKey ? advance(a.K, row, a.KStride * 4) : advance(a.V, row, a.VStride * 4), head, len * 4));
    vec4 x = vec4(0);
    if (there)
        x = vec4(src.f[4 * t], src.f[4 * t + 1], src.f[4 * t + 2], src.f[4 * t + 3]);
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    uvec2 dst = kv_head(isKey ? at.k : at.v, head, len);
    put_blocks(x, there, dst, kv_scales(dst, at.slot, len), t);
}
#else
void main()
{
    uint keyPairs = a.HeadsKV * a.KeyLen / 2;
    uint pairs = keyPairs + a.HeadsKV * a.ValLen / 2;
    uint row = item() / pairs, pair = item() % pairs;
    if (row >= a.Rows)
        return;
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    bool isKey = pair < keyPairs;
    uint len = isKey ? a.KeyLen : a.ValLen;
    uint n = 2 * (isKey ? pair : pair - keyPairs); // value of the row's K or V
    Floats src = Floats(isKey ? advance(a.K, row, a.KStride * 4) : advance(a.V, row, a.VStride * 4));
    put(kv_head(isKey ? at.k : at.v, n / len, len), n % len, src.f[n], src.f[n + 1]);
}
#endif
