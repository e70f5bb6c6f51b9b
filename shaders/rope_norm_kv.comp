#version 460
// rope_kv behind rms_norm of each head of Q and K, to the same bits. A head has ROW_LANES lanes of a workgroup, a lane 4 values of it: all
// sums of a head are one tree, which each of its lanes folds, and what a lane turns others have loaded.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(constant_id = 0) const uint ROW_LANES = DEFAULT_ROW_LANES; // 16 at least, for blocks

layout(push_constant, std430) uniform Args {
    uvec2 Q, K, V, CosSin, Pages, Pos, Seq, QNorm, KNorm;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, RopeDim, MaxPages, PagePositions, LayerOff, QStride, KStride, VStride, Neox;
    float Eps;
} a;

#include "kv.glsl"
#include "kv_put.glsl"
#ifdef BLOCKS
#include "kv_put_blocks.glsl"
#else
uint row_lanes(uint len) { return (len + 63) / 64 * 16; }
#endif

layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutFloats2 { vec2 f[]; };

shared float values[4 * LANES], weights[4 * LANES], squares[LANES];
#ifdef BLOCKS
shared float keys[4 * LANES];
#endif

// scale_head is what the values of the lane's head are multiplied by. The order of the sum is rms_norm's.
float scale_head(uint lane)
{
    uint base = lane / ROW_LANES * ROW_LANES;
    precise float v[ROW_LANES / 2];
    [[unroll]] for (uint i = 0; i < ROW_LANES / 2; i++)
        v[i] = squares[base + i] + squares[base + i + ROW_LANES / 2];
    [[unroll]] for (uint s = ROW_LANES / 4; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++)
            v[i] = v[i] + v[i + s];
    precise float mean = v[0] / float(a.KeyLen);
    precise float scale = 1.0 / sqrt(mean + a.Eps);
    return scale;
}

// normed is value i of the lane's head.
float normed(uint i, float scale)
{
    uint at = 4 * (gl_LocalInvocationID.x / ROW_LANES * ROW_LANES) + i;
    precise float y = values[at] * scale * weights[at];
    return y;
}

// Two pairs of a head that are turned, or 4 values that are not, as two runs of two neighbours each: where these begin.
struct Quad {
    uint first, second;
    vec2 x, y;
};

// turned is quad t of the lane's head by cosines and sines .xz and .yw.
Quad turned(uint t, vec4 cs, float scale)
{
    bool turns = t < a.RopeDim / 4, apart = turns && a.Neox != 0;
    Quad q;
    q.first = apart ? 2 * t : 4 * t;
    q.second = apart ? 2 * t + a.RopeDim / 2 : 4 * t + 2;
    q.x = vec2(normed(q.first, scale), normed(q.first + 1, scale));
    q.y = vec2(normed(q.second, scale), normed(q.second + 1, scale));
    if (!turns)
        return q;
    vec2 x0 = apart ? q.x : vec2(q.x.x, q.y.x), x1 = apart ? q.y : vec2(q.x.y, q.y.y);
    precise vec2 y0 = x0 * cs.xz - x1 * cs.yw;
    precise vec2 y1 = x0 * cs.yw + x1 * cs.xz;
    q.x = apart ? y0 : vec2(y0.x, y1.x);
    q.y = apart ? y1 : vec2(y0.y, y1.y);
    return q;
}

void main()
{
    uint lane = gl_LocalInvocationID.x, heads = a.Heads + a.HeadsKV, ofVal = row_lanes(a.ValLen);
    uint all = (heads * ROW_LANES + a.HeadsKV * ofVal + LANES - 1) / LANES * LANES; // heads don't straddle workgroups
    uint row = min(item() / all, a.Rows - 1), t = item() % all;
    bool isKey = t < heads * ROW_LANES, isQuery = t < a.Heads * ROW_LANES;
    uint ofHead = isKey ? ROW_LANES : ofVal, len = isKey ? a.KeyLen : a.ValLen;
    t -= isQuery ? 0 : isKey ? a.Heads * ROW_LANES : heads * ROW_LANES;
    uint head = t / ofHead;
    t %= ofHead;
    bool there = item() / all < a.Rows && 4 * t < len && head < (isQuery ? a.Heads : a.HeadsKV);

    // All that is read is asked for before it is waited for.
    uvec2 x = isQuery ? advance(a.Q, row, a.QStride * 4) : isKey ? advance(a.K, row, a.KStride * 4) : advance(a.V, row, a.VStride * 4);
    x = advance(x, head, len * 4);
    vec4 v = vec4(0), w = vec4(0), cs = vec4(0);
    if (there) {
        v = Floats4(x).f[t];
        if (isKey)
            w = Floats4(isQuery ? a.QNorm : a.KNorm).f[t];
        if (isKey && t < a.RopeDim / 4)
            cs = Floats4(advance(a.CosSin, row, a.RopeDim * 4)).f[t];
    }
    Place at = kv_place(Words(a.Seq).w[row], Words(a.Pos).w[row]);
    uvec2 dst = kv_head(isKey ? at.k : at.v, head, len);

    [[unroll]] for (uint k = 0; k < 4; k++) {
        values[4 * lane + k] = v[k];
        weights[4 * lane + k] = w[k];
    }
    precise vec4 each = fma(v, v, vec4(0));
    precise float own = (each.x + each.y) + (each.z + each.w);
    squares[lane] = own;
    barrier();
    Quad q = turned(t, cs, scale_head(lane));
    if (there && isQuery) {
        OutFloats2(x).f[q.first / 2] = q.x;
        OutFloats2(x).f[q.second / 2] = q.y;
    }
    there = there && !isQuery;
#ifdef BLOCKS
    uint base = 4 * (lane - t);
    if (isKey && 4 * t < len) {
        keys[base + q.first] = q.x.x;
        keys[base + q.first + 1] = q.x.y;
        keys[base + q.second] = q.y.x;
        keys[base + q.second + 1] = q.y.y;
    }
    barrier();
    if (isKey)
        v = vec4(keys[4 * lane], keys[4 * lane + 1], keys[4 * lane + 2], keys[4 * lane + 3]);
    put_blocks(v, there, dst, kv_scales(dst, at.slot, len), t);
#else
    if (!isKey)
        q = Quad(4 * t, 4 * t + 2, v.xy, v.zw);
    if (there) {
        put(dst, q.first, q.x.x, q.x.y);
        put(dst, q.second, q.y.x, q.y.y);
    }
#endif
}
