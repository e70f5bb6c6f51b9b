#version 460
// kv_append: stores K and V of each row at its position in the paged cache. One lane per pair of
// values: a pair is one word of F16.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 K, V, Pages, Pos, Seq;
    uint Rows, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, KStride, VStride, pad0;
} a;

#include "kv.glsl"
#include "kv_put.glsl"

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
