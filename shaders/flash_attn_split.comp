#version 460
// flash_attn_split: attention of few rows. A workgroup takes a row, GROUP query heads of one key head, and a part of the
// positions: each key and value is read once for all of them. With JOINED the last workgroup of a row and
// its heads to end puts the parts together, in their order, as flash_attn_join would: it is the last by Counters, which are 0
// before and after.
//
// SHARE lanes are a team, which takes RUN positions at a time and all dimensions of them: lane m has eights m, m + SHARE, … of
// the queries, of each key and value, and of the sums, in registers. Teams meet at the end; until then nobody waits for
// another. What a lane reads of a run it asks for at once: memory is far away.
//
// A vec4 has a value of each head: what GROUP does not have is used nowhere, and drivers leave it out. Registers are indexed
// by constants alone, and loops over them written out: one that a driver does not unroll puts an array into memory.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "subgroup.glsl"

layout(constant_id = 0) const uint GROUP = DEFAULT_GROUP;
layout(constant_id = 1) const uint KEY = DEFAULT_KEY; // KeyLen
layout(constant_id = 2) const uint VAL = DEFAULT_VAL; // ValLen
layout(constant_id = 3) const uint SHARE = DEFAULT_SHARE;
layout(constant_id = 4) const uint RUN = DEFAULT_RUN; // divides PagePositions, and TILE * SHARE / LANES

layout(push_constant, std430) uniform Args {
    uvec2 Q, Parts, Pages, Seen, Seq, Counters, Dst, Bytes, PerHead;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, QStride, DstStride, MaxParts;
    float Scale, SoftCap;
    uint Slopes;
} a;

#include "kv.glsl"
#include "kv_read.glsl"
#include "attn_seen.glsl"
#include "attn_cap.glsl"
#include "attn_parts.glsl"

const uint TEAMS = LANES / SHARE;
const uint KEYS = (KEY / 8 + SHARE - 1) / SHARE, VALUES = (VAL / 8 + SHARE - 1) / SHARE; // eights of a lane, MAX_EIGHTS at most
const uint PASS = VALUES == 1 ? 2 : 1; // heads whose values meet at a time
const uint ROW = VALUES * SHARE * 2;   // vec4s of theirs

shared vec4 tops[TEAMS], sums[TEAMS]; // of each head
shared vec4 parts[PASS * TEAMS * ROW];

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

// What is written out: F of each eight of a lane; of each of its 8 loads.
#define EACH_EIGHT(F) F(0) F(1) F(2) F(3)
#define EACH_LOAD(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

vec4 team_sum(vec4 v)
{
    if (SHARE > 16)
        v += subgroupShuffleXor(v, 16);
    if (SHARE > 8)
        v += subgroupShuffleXor(v, 8);
    if (SHARE > 4)
        v += subgroupShuffleXor(v, 4);
    v += subgroupShuffleXor(v, 2);
    return v + subgroupShuffleXor(v, 1);
}

// used are the values of the heads that there are, which alone go into shared memory.
vec4 used(vec4 v) { return vec4(v.x, GROUP > 1 ? v.y : 0, GROUP > 2 ? v.z : 0, GROUP > 3 ? v.w : 0); }

// slopes_of are the slopes of the workgroup's heads.
vec4 slopes_of(uint head0)
{
    Floats of = Floats(advance(a.PerHead, head0, 4));
    return vec4(of.f[0], GROUP > 1 ? of.f[1] : 0, GROUP > 2 ? of.f[2] : 0, GROUP > 3 ? of.f[3] : 0);
}

vec4 capped4(vec4 s) { return vec4(capped(s.x), capped(s.y), capped(s.z), capped(s.w)); }

// store adds the teams' values of heads from `head` on up, which stand in parts.
void store(uint row, uint head, uint heads, uint part)
{
    const uint QUADS = VAL / 4;
    for (uint i = gl_LocalInvocationID.x; i < heads * QUADS; i += LANES) {
        uint h = i / QUADS, quad = i % QUADS;
        vec4 v = vec4(0);
        for (uint t = 0; t < TEAMS; t++)
            v += parts[(h * TEAMS + t) * ROW + quad];
        Left4(part_values(part_index(row, head + h, part))).f[quad] = v;
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
    uint seq = Words(a.Seq).w[row], last = last_seen(row), count = last + 1, begin = first_seen(row);
    uint from = parts_begin(begin), span = span_of(count - from), first = from + part * span, end = min(count, first + span);
    if (first >= count)
        return;
    begin = max(begin, first);
    uint lane = subgroup_lane(), team = lane / SHARE, member = lane % SHARE;

    // A lane without an eight of its own has the last one of a row, and nothing comes of it.
#define EIGHT_OF(e, len) min(member + (e) * SHARE, len / 8 - 1)
    vec4 query[MAX_EIGHTS][8], acc[MAX_EIGHTS][8];
    Floats4 q = Floats4(advance(advance(a.Q, row, a.QStride * 4), head0, KEY * 4));
#define BEGIN(e) \
    { \
        mat4 lo = mat4(0), hi = mat4(0); \
        QUERY(e, 0) QUERY(e, 1) QUERY(e, 2) QUERY(e, 3) \
        lo = transpose(lo); \
        hi = transpose(hi); \
        SPREAD(e, 0) SPREAD(e, 1) SPREAD(e, 2) SPREAD(e, 3) \
    }
#define QUERY(e, h) \
        if (GROUP > h && KEYS > e && member + e * SHARE < KEY / 8) { \
            lo[h] = q.f[h * (KEY / 4) + 2 * (member + e * SHARE)] * a.Scale; \
            hi[h] = q.f[h * (KEY / 4) + 2 * (member + e * SHARE) + 1] * a.Scale; \
        }
#define SPREAD(e, j) \
        query[e][j] = lo[j]; \
        query[e][4 + j] = hi[j]; \
        acc[e][j] = acc[e][4 + j] = vec4(0);
    EACH_EIGHT(BEGIN)
    vec4 top = vec4(NONE), sum = vec4(0), slope = vec4(0);
    if (a.Slopes != 0)
        slope = slopes_of(head0);

    uint at = first + team * RUN;
    uvec2 page = page_of(seq, clamp(at, begin, end - 1));
    [[dont_unroll]] for (uint next = first; next < end; next += TEAMS * RUN, at += TEAMS * RUN) {
        // Positions that are not seen are read as the nearest that is, and have no weight.
        uint p0 = clamp(at, begin, end - 1);
        Place place = in_page(page, p0);
        uvec2 k0 = kv_head(place.k, headKV, KEY), v0 = kv_head(place.v, headKV, VAL);
        uvec2 ks0 = kv_scales(k0, place.slot, KEY), vs0 = kv_scales(v0, place.slot, VAL);
        Raw key[8], value[8];
#define LOAD_KEY(n) \
        if (n < RUN * KEYS) { \
            uint r = clamp(at + n / KEYS, begin, end - 1) - p0, i = EIGHT_OF(n % KEYS, KEY); \
            key[n] = kv_raw(k0, ks0, r * (KEY / 8) + i, r * ((KEY + 63) / 64) + i / 8); \
        }
        EACH_LOAD(LOAD_KEY)
#define LOAD_VALUE(n) \
        if (n < RUN * VALUES) { \
            uint r = clamp(at + n / VALUES, begin, end - 1) - p0, i = EIGHT_OF(n % VALUES, VAL); \
            value[n] = kv_raw(v0, vs0, r * (VAL / 8) + i, r * ((VAL + 63) / 64) + i / 8); \
        }
        EACH_LOAD(LOAD_VALUE)
        page = page_of(seq, clamp(at + TEAMS * RUN, begin, end - 1));

        vec4 s[8]; // scores, then weights
#define NO_SCORE(b) s[b] = vec4(0);
        EACH_LOAD(NO_SCORE)
#define SCORE(n) \
        if (n < RUN * KEYS) { \
            const uint e = n % KEYS, b = n / KEYS; \
            Eight k = kv_opened(key[n], EIGHT_OF(e, KEY)); \
            vec4 t = s[b]; \
            t += query[e][0] * k.lo.x; \
            t += query[e][1] * k.lo.y; \
            t += query[e][2] * k.lo.z; \
            t += query[e][3] * k.lo.w; \
            t += query[e][4] * k.hi.x; \
            t += query[e][5] * k.hi.y; \
            t += query[e][6] * k.hi.z; \
            t += query[e][7] * k.hi.w; \
            s[b] = t; \
        }
        EACH_LOAD(SCORE)
#define MEET(b) if (b < RUN) s[b] = team_sum(s[b]);
        EACH_LOAD(MEET)
        if (a.SoftCap != 0) {
#define CAP(b) if (b < RUN) s[b] = capped4(s[b]);
            EACH_LOAD(CAP)
        }
        if (a.Slopes != 0) {
#define LEAN(b) if (b < RUN) s[b] += slope * lean(1, at + b, last);
            EACH_LOAD(LEAN)
        }

        vec4 most = top;
#define SEEN(b) (at + b >= begin && at + b < end)
#define MOST(b) if (b < RUN) most = max(most, SEEN(b) ? s[b] : vec4(NONE));
        EACH_LOAD(MOST)
        vec4 fade = exp(top - most); // 0 in the first run
        sum *= fade;
        top = most;
#define WEIGH(b) \
        if (b < RUN) { \
            s[b] = exp(s[b] - most); \
            s[b] = SEEN(b) ? s[b] : vec4(0); \
            sum += s[b]; \
        }
        EACH_LOAD(WEIGH)

#define FADE(e) \
        if (VALUES > e) { \
            acc[e][0] *= fade; \
            acc[e][1] *= fade; \
            acc[e][2] *= fade; \
            acc[e][3] *= fade; \
            acc[e][4] *= fade; \
            acc[e][5] *= fade; \
            acc[e][6] *= fade; \
            acc[e][7] *= fade; \
        }
        EACH_EIGHT(FADE)
#define TAKE(n) \
        if (n < RUN * VALUES) { \
            const uint e = n % VALUES; \
            Eight v = kv_opened(value[n], EIGHT_OF(e, VAL)); \
            vec4 w = s[n / VALUES]; \
            acc[e][0] += w * v.lo.x; \
            acc[e][1] += w * v.lo.y; \
            acc[e][2] += w * v.lo.z; \
            acc[e][3] += w * v.lo.w; \
            acc[e][4] += w * v.hi.x; \
            acc[e][5] += w * v.hi.y; \
            acc[e][6] += w * v.hi.z; \
            acc[e][7] += w * v.hi.w; \
        }
        EACH_LOAD(TAKE)
    }

    // The teams meet: all sums relative to the largest score of all, then added up in the order of the teams.
    if (member == 0)
        tops[team] = used(top);
    barrier();
    vec4 most = tops[0];
    for (uint t = 1; t < TEAMS; t++)
        most = max(most, tops[t]);
    vec4 fade = exp(top - most);
    if (member == 0)
        sums[team] = used(sum * fade);
#define LEAVE(e, h, c) \
    if (VALUES > e) { \
        uint to = (h % PASS * TEAMS + team) * ROW + 2 * (member + e * SHARE); \
        parts[to] = vec4(acc[e][0].c, acc[e][1].c, acc[e][2].c, acc[e][3].c) * fade.c; \
        parts[to + 1] = vec4(acc[e][4].c, acc[e][5].c, acc[e][6].c, acc[e][7].c) * fade.c; \
    }
#define STORE(h, c) \
    if (GROUP > h) { \
        if (h % PASS == 0 && h > 0) \
            barrier(); \
        LEAVE(0, h, c) LEAVE(1, h, c) LEAVE(2, h, c) LEAVE(3, h, c) \
        if (h % PASS == PASS - 1 || h == GROUP - 1) { \
            barrier(); \
            store(row, head0 + h / PASS * PASS, h % PASS + 1, part); \
        } \
    }
    STORE(0, x) STORE(1, y) STORE(2, z) STORE(3, w)
    if (gl_LocalInvocationID.x < GROUP) {
        uint h = gl_LocalInvocationID.x;
        float total = 0;
        for (uint t = 0; t < TEAMS; t++)
            total += sums[t][h];
        Left stats = Left(part_stats(part_index(row, head0 + h, part)));
        stats.f[0] = h == 0 ? most.x : h == 1 ? most.y : h == 2 ? most.z : most.w;
        stats.f[1] = total;
    }

#ifdef JOINED
    uint all = parts_of(count - from);
    if (all == 1)
        memoryBarrierBuffer();
    barrier();
    if (all == 1 || last_of(row * perRow + g % perRow, all)) {
        uint bytes = (a.Rows * a.Heads * a.ValLen + 15) & ~15u; // those of Q8Size, then the sums
        join(row, head0, all, a.Dst, a.Bytes, advance(a.Bytes, bytes, 1), a.Slopes != 0 ? uvec2(0) : a.PerHead);
    }
#endif
}
