#version 460
// flash_attn_split: attention of few rows. A workgroup takes a row, GROUP query heads of one key head, and a part of the
// positions, 64 at a time: each key and value is read once for all of them. With JOINED the last workgroup of a row and
// its heads to end puts the parts together, in their order, as flash_attn_join would: it is the last by Counters, which are 0
// before and after.
//
// For the scores 4 lanes share a position; for the values a lane has 8 dimensions of every POSITIONS-th position. What a
// lane reads of a tile it asks for at once, the values before the scores are known: memory is far away.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "subgroup.glsl"

layout(constant_id = 0) const uint GROUP = DEFAULT_GROUP;
layout(constant_id = 1) const uint AHEAD = DEFAULT_AHEAD;

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
const uint ROUNDS = TILE * SHARE / LANES; // positions of a tile whose keys a lane helps with
const uint VALUES = AHEAD, KEYS = (AHEAD + ROUNDS - 1) / ROUNDS; // parts of values and of a key that a lane asks for at once
const uint PASS = 2; // heads whose values meet at a time

shared vec4 query[GROUP][MAX_HEAD / 4];
shared float weight[GROUP][TILE]; // scores, then exp(score - top)
shared uvec2 key[TILE], value[TILE]; // where those of the tile's positions are
#ifdef BLOCKS
shared uvec2 key_scales[TILE], value_scales[TILE];
#define SCALES_OF(k, p) k##_scales[p]
#else
#define SCALES_OF(k, p) uvec2(0)
#endif
shared float top[GROUP], fade[GROUP], sum[GROUP];
shared vec4 parts[PASS * LANES * 2]; // (PASS, POSITIONS, ValLen)

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

// places finds the keys and values of the tile's positions from first on; those outside begin … end-1 have none.
void places(uint seq, uint headKV, uint first, uint begin, uint end)
{
    uint p = gl_LocalInvocationID.x, pos = first + p;
    if (p >= TILE || pos < begin || pos >= end)
        return;
    Place at = kv_place(seq, pos);
    key[p] = kv_head(at.k, headKV, a.KeyLen);
    value[p] = kv_head(at.v, headKV, a.ValLen);
#ifdef BLOCKS
    key_scales[p] = kv_scales(key[p], at.slot, a.KeyLen);
    value_scales[p] = kv_scales(value[p], at.slot, a.ValLen);
#endif
}

// scores fills weight with those of the tile's positions; of those outside from … to-1 it has NONE.
void scores(uint from, uint to)
{
    uint member = subgroup_lane() % SHARE, mine = subgroup_lane() / SHARE, eights = a.KeyLen / 8;
    float s[ROUNDS][GROUP];
    [[unroll]] for (uint r = 0; r < ROUNDS; r++)
        [[unroll]] for (uint h = 0; h < GROUP; h++)
            s[r][h] = 0;
    for (uint i0 = member; i0 < eights; i0 += SHARE * KEYS) {
        Raw raw[ROUNDS][KEYS];
        [[unroll]] for (uint r = 0; r < ROUNDS; r++) {
            uint p = r * (LANES / SHARE) + mine;
            [[unroll]] for (uint u = 0; u < KEYS; u++)
                if (p >= from && p < to && i0 + u * SHARE < eights)
                    raw[r][u] = kv_raw(key[p], SCALES_OF(key, p), i0 + u * SHARE);
        }
        [[unroll]] for (uint r = 0; r < ROUNDS; r++) {
            uint p = r * (LANES / SHARE) + mine;
            [[unroll]] for (uint u = 0; u < KEYS; u++) {
                uint i = i0 + u * SHARE;
                if (p >= from && p < to && i < eights) {
                    Eight k = kv_opened(raw[r][u], i);
                    [[unroll]] for (uint h = 0; h < GROUP; h++)
                        s[r][h] += dot(query[h][2 * i], k.lo) + dot(query[h][2 * i + 1], k.hi);
                }
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROUNDS; r++) {
        uint p = r * (LANES / SHARE) + mine;
        [[unroll]] for (uint h = 0; h < GROUP; h++) {
            float total = capped(sum_within(s[r][h], SHARE) * a.Scale);
            if (member == h % SHARE)
                weight[h][p] = p >= from && p < to ? total : NONE;
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
        places(seq, headKV, first, begin, end);
        barrier();
        uint low = max(begin, first) - first, high = min(end - first, TILE);
        Raw raw[VALUES];
        [[unroll]] for (uint u = 0; u < VALUES; u++) {
            uint p = p0 + u * positions;
            if (p0 < positions && p >= low && p < high)
                raw[u] = kv_raw(value[p], SCALES_OF(value, p), d);
        }
        scores(low, high);
        barrier();
        soften();
        barrier();
        [[unroll]] for (uint h = 0; h < GROUP; h++) {
            acc[h].lo *= fade[h];
            acc[h].hi *= fade[h];
        }
        for (uint next = p0; p0 < positions && next < high; next += VALUES * positions) {
            [[unroll]] for (uint u = 0; u < VALUES; u++) {
                uint p = next + u * positions;
                if (next > p0 && p >= low && p < high) // a row long enough to leave few positions to a lane
                    raw[u] = kv_raw(value[p], SCALES_OF(value, p), d);
            }
            [[unroll]] for (uint u = 0; u < VALUES; u++) {
                uint p = next + u * positions;
                if (p >= low && p < high) {
                    Eight v = kv_opened(raw[u], d);
                    [[unroll]] for (uint h = 0; h < GROUP; h++) {
                        acc[h].lo += weight[h][p] * v.lo;
                        acc[h].hi += weight[h][p] * v.hi;
                    }
                }
            }
        }
    }

    uint quads = a.ValLen / 4;
    [[unroll]] for (uint h0 = 0; h0 < GROUP; h0 += PASS) {
        barrier();
        [[unroll]] for (uint h = h0; h < GROUP && h < h0 + PASS; h++)
            if (p0 < positions) {
                uint at = ((h - h0) * positions + p0) * quads + 2 * d;
                parts[at] = acc[h].lo;
                parts[at + 1] = acc[h].hi;
            }
        barrier();
        for (uint i = lane; i < min(PASS, GROUP - h0) * quads; i += LANES) {
            uint h = i / quads, quad = i % quads;
            vec4 v = vec4(0);
            for (uint p = 0; p < positions; p++)
                v += parts[(h * positions + p) * quads + quad];
            Left4(part_values(part_index(row, head0 + h0 + h, part))).f[quad] = v;
        }
    }
    if (lane < GROUP) {
        Left stats = Left(part_stats(part_index(row, head0 + lane, part)));
        stats.f[0] = top[lane];
        stats.f[1] = sum[lane];
    }

#ifdef JOINED
    uint all = parts_of(count - from);
    if (all == 1)
        memoryBarrierBuffer();
    barrier();
    if (all == 1 || last_of(row * perRow + g % perRow, all)) {
        uint bytes = (a.Rows * a.Heads * a.ValLen + 15) & ~15u; // those of Q8Size, then the sums
        join(row, head0, all, a.Dst, a.Bytes, advance(a.Bytes, bytes, 1));
    }
#endif
}
