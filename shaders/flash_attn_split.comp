#version 460
// flash_attn_split: attention of few rows. A workgroup takes a row, GROUP query heads of one key head, and a part of the
// positions, 64 at a time: each key and value is read once for all of them. With JOINED the last workgroup of a row and
// its heads to end puts the parts together, in their order, as flash_attn_join would: it is the last by Counters, which are 0
// before and after.
//
// For the scores 4 lanes share a position; for the values a lane has 8 dimensions of every POSITIONS-th position.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "subgroup.glsl"

layout(constant_id = 0) const uint GROUP = DEFAULT_GROUP;

layout(push_constant, std430) uniform Args {
    uvec2 Q, Parts, Pages, Pos, Seq, Counters, Dst, Bytes, Sinks;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, QStride, DstStride, MaxParts;
    float Scale, SoftCap;
    uint Window;
} a;

#include "kv.glsl"
#include "kv_read.glsl"
#include "attn_window.glsl"
#include "attn_cap.glsl"
#include "attn_parts.glsl"

const uint SHARE = 4; // lanes of a position

shared vec4 query[GROUP][MAX_HEAD / 4];
shared float weight[GROUP][TILE];  // scores, then exp(score - top)
shared uvec2 value[TILE];          // address of V of the tile's positions
#ifdef BLOCKS
shared uvec2 value_scales[TILE];
#define SCALES_OF(p) value_scales[p]
#else
#define SCALES_OF(p) uvec2(0)
#endif
shared float top[GROUP], fade[GROUP], sum[GROUP];
shared float parts[LANES * 8];     // (POSITIONS, ValLen) of one head

#ifdef JOINED
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counts { uint n[]; };
shared uint ended; // workgroups of the row and heads before this one
const uint Q8_LANES = LANES, HEADS = GROUP;
#include "attn_join.glsl"

// last_of counts the workgroups that have ended: what all of them have left is there for the last of them.
bool last_of(uint counter, uint workgroups)
{
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) {
        ended = atomicAdd(Counts(a.Counters).n[counter], 1);
        if (ended == workgroups - 1)
            Counts(a.Counters).n[counter] = 0; // for the next dispatch
    }
    barrier();
    memoryBarrierBuffer();
    return ended == workgroups - 1;
}
#endif

float max_within(float v, uint width)
{
    for (uint s = width / 2; s > 0; s >>= 1)
        v = max(v, subgroupShuffleXor(v, s));
    return v;
}

// scores fills weight with those of the tile's positions from first on, and value; those outside begin … end-1 have none.
void scores(uint seq, uint headKV, uint first, uint begin, uint end)
{
    uint member = subgroup_lane() % SHARE;
    for (uint p = subgroup_lane() / SHARE; p < TILE; p += LANES / SHARE) {
        float s[GROUP];
        [[unroll]] for (uint h = 0; h < GROUP; h++)
            s[h] = 0;
        bool there = first + p >= begin && first + p < end;
        if (there) {
            Place at = kv_place(seq, first + p);
            uvec2 key = kv_head(at.k, headKV, a.KeyLen), scales = kv_scales(key, at.slot, a.KeyLen);
            if (member == 0) {
                value[p] = kv_head(at.v, headKV, a.ValLen);
#ifdef BLOCKS
                value_scales[p] = kv_scales(value[p], at.slot, a.ValLen);
#endif
            }
            for (uint i = member; i < a.KeyLen / 8; i += SHARE) {
                Eight k = kv_eight(key, scales, i);
                [[unroll]] for (uint h = 0; h < GROUP; h++)
                    s[h] += dot(query[h][2 * i], k.lo) + dot(query[h][2 * i + 1], k.hi);
            }
        }
        [[unroll]] for (uint h = 0; h < GROUP; h++) {
            float total = capped(sum_within(s[h], SHARE) * a.Scale);
            if (member == h % SHARE)
                weight[h][p] = there ? total : NONE;
        }
    }
}

// soften turns scores into weights; a subgroup has a head at a time.
void soften()
{
    uint lane = gl_SubgroupInvocationID;
    for (uint h = gl_SubgroupID; h < GROUP; h += gl_NumSubgroups) {
        float most = NONE;
        for (uint p = lane; p < TILE; p += gl_SubgroupSize)
            most = max(most, weight[h][p]);
        float newTop = max(top[h], max_within(most, gl_SubgroupSize));
        float total = 0;
        for (uint p = lane; p < TILE; p += gl_SubgroupSize) {
            float w = weight[h][p] > NONE ? exp(weight[h][p] - newTop) : 0;
            weight[h][p] = w;
            total += w;
        }
        total = sum_within(total, gl_SubgroupSize);
        if (lane == 0) {
            fade[h] = exp(top[h] - newTop); // 0 in the first tile
            sum[h] = sum[h] * fade[h] + total;
            top[h] = newTop;
        }
    }
}

void main()
{
    uint g = group();
    uint groups = a.Heads / (a.HeadsKV * GROUP); // workgroups that share a key head
    uint perRow = a.HeadsKV * groups;
    uint row = g / perRow % a.Rows, part = g / perRow / a.Rows;
    if (part >= a.MaxParts)
        return;
    uint headKV = g % perRow / groups, head0 = headKV * (a.Heads / a.HeadsKV) + g % groups * GROUP;
    uint seq = Words(a.Seq).w[row], count = Words(a.Pos).w[row] + 1, begin = first_seen(count - 1);
    uint from = parts_begin(begin), span = span_of(count - from), first = from + part * span, end = min(count, first + span);
    if (first >= count)
        return;
    uint lane = gl_LocalInvocationID.x;
    for (uint i = lane; i < GROUP * a.KeyLen / 4; i += LANES)
        query[i / (a.KeyLen / 4)][i % (a.KeyLen / 4)] = Floats4(advance(advance(a.Q, row, a.QStride * 4), head0, a.KeyLen * 4)).f[i];
    if (lane < GROUP) {
        top[lane] = NONE;
        sum[lane] = 0;
    }

    uint dims = a.ValLen / 8, positions = LANES / dims;
    uint d = lane % dims, p0 = lane / dims;
    Eight acc[GROUP];
    [[unroll]] for (uint h = 0; h < GROUP; h++)
        acc[h] = Eight(vec4(0), vec4(0));

    for (; first < end; first += TILE) {
        barrier(); // the query is there; the last tile's weights are used up
        scores(seq, headKV, first, begin, end);
        barrier();
        soften();
        barrier();
        [[unroll]] for (uint h = 0; h < GROUP; h++) {
            acc[h].lo *= fade[h];
            acc[h].hi *= fade[h];
        }
        uint n = p0 < positions ? min(end - first, TILE) : 0, unseen = max(begin, first) - first;
        for (uint p = p0 + (max(unseen, p0) - p0 + positions - 1) / positions * positions; p < n; p += positions) {
            Eight v = kv_eight(value[p], SCALES_OF(p), d);
            [[unroll]] for (uint h = 0; h < GROUP; h++) {
                acc[h].lo += weight[h][p] * v.lo;
                acc[h].hi += weight[h][p] * v.hi;
            }
        }
    }

    [[unroll]] for (uint h = 0; h < GROUP; h++) {
        barrier();
        if (p0 < positions)
            [[unroll]] for (uint k = 0; k < 4; k++) {
                parts[p0 * a.ValLen + d * 8 + k] = acc[h].lo[k];
                parts[p0 * a.ValLen + d * 8 + 4 + k] = acc[h].hi[k];
            }
        barrier();
        uint index = part_index(row, head0 + h, part);
        for (uint i = lane; i < a.ValLen; i += LANES) {
            float v = 0;
            for (uint p = 0; p < positions; p++)
                v += parts[p * a.ValLen + i];
            Left(part_values(index)).f[i] = v;
        }
        if (lane == 0) {
            Left(part_stats(index)).f[0] = top[h];
            Left(part_stats(index)).f[1] = sum[h];
        }
    }

#ifdef JOINED
    uint all = parts_of(count - from);
    if (last_of(row * perRow + g % perRow, all)) {
        uint bytes = (a.Rows * a.Heads * a.ValLen + 15) & ~15u; // those of Q8Size, then the sums
        join(row, head0, all, a.Dst, a.Bytes, advance(a.Bytes, bytes, 1));
    }
#endif
}
