#version 460
// flash_attn: one workgroup per row and query head; softmax(Scale·q·Kᵀ)·V over the positions that the row sees, LANES positions at a time. Keys have at most
// MAX_KEY values, values MAX_HEAD. In a tile a lane first owns a position (its score), then pairs of value dimensions. Tiles start at multiples of LANES, so a
// result depends on the positions seen alone.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Q, Dst, Pages, Seen, Seq, Sinks, Slopes;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, QStride, DstStride;
    float Scale, SoftCap;
} a;

#include "kv.glsl"
#include "kv_read.glsl"
#include "attn_seen.glsl"
#include "attn_cap.glsl"

const uint PAIRS = MAX_HEAD / 2 / LANES; // pairs of value dimensions a lane may own
const float NONE = -3.0e38; // not -infinity: a driver need not honour it

shared vec4 query[MAX_KEY / 4]; // (KeyLen)
shared float weight[LANES];      // exp(score - top) of the tile's positions
shared uvec2 value[LANES];       // address of V of the tile's positions
#ifdef BLOCKS
shared uvec2 value_scales[LANES];
#define SCALES_OF(j) value_scales[j]
#else
#define SCALES_OF(j) uvec2(0)
#endif

void load_query(uint row, uint head)
{
    Floats q = Floats(advance(advance(a.Q, row, a.QStride * 4), head, a.KeyLen * 4));
    for (uint i = gl_LocalInvocationID.x; i < a.KeyLen / 4; i += LANES)
        query[i] = vec4(q.f[4 * i], q.f[4 * i + 1], q.f[4 * i + 2], q.f[4 * i + 3]);
}

float score(uvec2 key, uvec2 scales)
{
    precise vec4 lo = vec4(0), hi = vec4(0);
    for (uint i = 0; i < a.KeyLen / 8; i++) {
        Eight k = kv_eight(key, scales, i);
        lo = fma(query[2 * i], k.lo, lo);
        hi = fma(query[2 * i + 1], k.hi, hi);
    }
    precise vec4 s = lo + hi;
    precise float total = ((s.x + s.y) + (s.z + s.w)) * a.Scale;
    return capped(total);
}

void main()
{
    uint row = group() / a.Heads, head = group() % a.Heads;
    if (row >= a.Rows)
        return;
    uint lane = gl_LocalInvocationID.x;
    uint headKV = head / (a.Heads / a.HeadsKV);
    uint seq = Words(a.Seq).w[row];
    uint last = last_seen(row), count = last + 1, begin = first_seen(row);
    bool slopes = (a.Slopes.x | a.Slopes.y) != 0;
    float slope = slopes ? Floats(a.Slopes).f[head] : 0;
    load_query(row, head);

    precise vec2 acc[PAIRS];
    [[unroll]] for (uint i = 0; i < PAIRS; i++)
        acc[i] = vec2(0);
    precise float total = 0;
    float top = NONE;

    for (uint first = begin / LANES * LANES; first < count; first += LANES) {
        barrier(); // the query is there; the last tile's weights are used up
        float s = NONE;
        if (first + lane < count && first + lane >= begin) {
            Place at = kv_place(seq, first + lane);
            value[lane] = kv_head(at.v, headKV, a.ValLen);
#ifdef BLOCKS
            value_scales[lane] = kv_scales(value[lane], at.slot, a.ValLen);
#endif
            uvec2 key = kv_head(at.k, headKV, a.KeyLen);
            s = score(key, kv_scales(key, at.slot, a.KeyLen));
            if (slopes)
                s += lean(slope, first + lane, last);
        }
        float newTop = max(top, max_lanes(s));
        precise float fade = exp(top - newTop); // 0 in the first tile
        precise float p = exp(s - newTop);      // 0 where none is seen
        weight[lane] = p;
        precise float tileSum = sum_lanes(p); // its barriers publish weight and value
        total = fma(total, fade, tileSum);
        top = newTop;

        uint seen = max(begin, first) - first, n = min(count - first, LANES);
        [[unroll]] for (uint i = 0; i < PAIRS; i++) {
            uint pair = lane + i * LANES;
            if (2 * pair < a.ValLen) {
                acc[i] *= fade;
                for (uint j = seen; j < n; j++)
                    acc[i] = fma(vec2(weight[j]), kv_pair(value[j], SCALES_OF(j), pair), acc[i]);
            }
        }
    }

    if ((a.Sinks.x | a.Sinks.y) != 0) { // a score without a value
        float sink = Floats(a.Sinks).f[head], newTop = max(top, sink);
        precise float fade = exp(top - newTop), p = exp(sink - newTop);
        total = fma(total, fade, p);
        [[unroll]] for (uint i = 0; i < PAIRS; i++)
            acc[i] *= fade;
    }

    Floats dst = Floats(advance(advance(a.Dst, row, a.DstStride * 4), head, a.ValLen * 4));
    [[unroll]] for (uint i = 0; i < PAIRS; i++) {
        uint pair = lane + i * LANES;
        if (2 * pair < a.ValLen) {
            dst.f[2 * pair] = acc[i].x / total;
            dst.f[2 * pair + 1] = acc[i].y / total;
        }
    }
}
