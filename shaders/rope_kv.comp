#version 460
// rope_kv: rope of Q in place, and of K on its way into the paged cache, V beside it. One lane per 4 values of a head: two
// pairs, of which each side's two values are neighbours; of what becomes blocks 4 neighbours.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Q, K, V, CosSin, Pages, Pos, Seq;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, RopeDim, MaxPages, PagePositions, LayerOff, QStride, KStride, VStride, Neox, pad0;
} a;

#include "kv.glsl"
#include "kv_put.glsl"
#ifdef BLOCKS
#include "kv_put_blocks.glsl"
#endif

struct Quad {
    uint first, second; // of a head: where two neighbours begin
    vec2 x, y;
};

// turned loads the quad t of the head at x, and turns it.
Quad turned(Floats x, uint t, uint row)
{
    bool turns = t < a.RopeDim / 4;
    Quad q;
    q.first = a.Neox != 0 && turns ? 2 * t : 4 * t;
    q.second = a.Neox != 0 && turns ? 2 * t + a.RopeDim / 2 : 4 * t + 2;
    q.x = vec2(x.f[q.first], x.f[q.first + 1]);
    q.y = vec2(x.f[q.second], x.f[q.second + 1]);
    if (!turns)
        return q;
    Floats cs = Floats(advance(a.CosSin, row, a.RopeDim * 4));
    vec2 c = vec2(cs.f[4 * t], cs.f[4 * t + 2]), s = vec2(cs.f[4 * t + 1], cs.f[4 * t + 3]);
    vec2 x0 = a.Neox != 0 ? q.x : vec2(q.x.x, q.y.x), x1 = a.Neox != 0 ? q.y : vec2(q.x.y, q.y.y);
    precise vec2 y0 = x0 * c - x1 * s;
    precise vec2 y1 = x0 * s + x1 * c;
    q.x = a.Neox != 0 ? y0 : vec2(y0.x, y1.x);
    q.y = a.Neox != 0 ? y1 : vec2(y0.y, y1.y);
    return q;
}

void turn_query(uint row, uint t)
{
    uint keys = a.KeyLen / 4;
    Floats x = Floats(advance(advance(a.Q, row, a.QStride * 4), t / keys, a.KeyLen * 4));
    Quad q = turned(x, t % keys, row);
    x.f[q.first] = q.x.x;
    x.f[q.first + 1] = q.x.y;
    x.f[q.second] = q.y.x;
    x.f[q.second + 1] = q.y.y;
}

#ifdef BLOCKS
// turned_value is value i of the head at x, turned.
float turned_value(Floats x, uint i, uint row)
{
    if (i >= a.RopeDim)
        return x.f[i];
    bool neox = a.Neox != 0;
    uint half_dim = a.RopeDim / 2, pair = neox ? i % half_dim : i / 2;
    bool first = neox ? i < half_dim : (i & 1) == 0;
    Floats cs = Floats(advance(a.CosSin, row, a.RopeDim * 4));
    float c = cs.f[2 * pair], s = cs.f[2 * pair + 1], x0 = x.f[neox ? pair : 2 * pair], x1 = x.f[neox ? pair + half_dim : 2 * pair + 1];
    precise float y0 = x0 * c - x1 * s;
    precise float y1 = x0 * s + x1 * c;
    return first ? y0 : y1;
}

void main()
{
    uint queries = a.Heads * (a.KeyLen / 4), ofQ = (queries + 15) / 16 * 16; // blocks begin at a multiple of 16 lanes
    uint ofKey = row_lanes(a.KeyLen), ofK = a.HeadsKV * ofKey, ofVal = row_lanes(a.ValLen), all = ofQ + ofK + a.HeadsKV * ofVal;
    bool inside = item() / all < a.Rows;
    uint row = min(item() / all, a.Rows - 1), t = item() % all;
    if (inside && t < queries)
        turn_query(row, t);

    bool there = inside && t >= ofQ;
    t -= there ? ofQ : t;
    bool isKey = t < ofK;
    uint len = isKey ? a.KeyLen : a.ValLen, head = isKey ? t / ofKey : (t - ofK) / ofVal;
    t = isKey ? t % ofKey : (t - ofK) % ofVal;
    there = there && 4 * t < len;
    Floats src = Floats(advance(isKey ? advance(a.K, row, a.KStride * 4) : advance(a.V, row, a.VStride * 4), head, len * 4));
    vec4 x = vec4(0);
    if (there)
        [[unroll]] for (uint i = 0; i < 4; i++)
            x[i] = isKey ? turned_value(src, 4 * t + i, row) : src.f[4 * t + i];
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    uvec2 dst = kv_head(isKey ? at.k : at.v, head, len);
    put_blocks(x, there, dst, kv_scales(dst, at.slot, len), t);
}
#else
void main()
{
    uint keys = a.KeyLen / 4, values = a.ValLen / 4; // quads of a head
    uint ofQ = a.Heads * keys, ofK = a.HeadsKV * keys, ofV = a.HeadsKV * values;
    uint row = item() / (ofQ + ofK + ofV), t = item() % (ofQ + ofK + ofV);
    if (row >= a.Rows)
        return;
    if (t < ofQ) {
        turn_query(row, t);
        return;
    }
    t -= ofQ;
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    if (t < ofK) {
        uint head = t / keys;
        Quad q = turned(Floats(advance(advance(a.K, row, a.KStride * 4), head, a.KeyLen * 4)), t % keys, row);
        uvec2 dst = kv_head(at.k, head, a.KeyLen);
        put(dst, q.first, q.x.x, q.x.y);
        put(dst, q.second, q.y.x, q.y.y);
        return;
    }
    t -= ofK;
    uint head = t / values, i = t % values * 4;
    Floats v = Floats(advance(advance(a.V, row, a.VStride * 4), head, a.ValLen * 4));
    uvec2 dst = kv_head(at.v, head, a.ValLen);
    put(dst, i, v.f[i], v.f[i + 1]);
    put(dst, i + 2, v.f[i + 2], v.f[i + 3]);
}
#endif
