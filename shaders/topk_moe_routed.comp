#version 460
// rms_norm_q8, mul_mat_vec_wide with a router's weights, and topk_moe of what that makes, in one dispatch, to the same bits.
// A row has one workgroup for every TEAMS experts, each of which norms it for itself, and one more that stores what the norm makes; the last of the others to end chooses.
//
// ROW_LANES are those of rms_norm_q8, whose order its sum has; a lane of these has the runs of ROW_LANES / LANES of them.
#extension GL_GOOGLE_include_directive : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "subgroup.glsl"
#include "norm.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(constant_id = 1) const uint PER = DEFAULT_PER;
layout(constant_id = 2) const uint TEAM = DEFAULT_TEAM;
layout(constant_id = 3) const uint UNROLL = DEFAULT_UNROLL;
layout(constant_id = 4) const uint ROW_LANES = DEFAULT_ROW_LANES;

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Router, Dst, Bytes, Scores, Bias, IDs, Weights, Counters, Residents;
    uint Rows, Cols, Experts, Used, Gating, Groups, GroupsUsed;
    float Scale;
    uint GroupBest;
    float Eps;
} a;

#define ROUTED
#include "topk_moe.glsl"
#include "wide.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFloats4 { vec4 f[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Left { float f[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counts { uint n[]; };

const uint Q8_LANES = LANES;
#define Q8_WITHIN
#include "q8.glsl"

const uint TEAMS = LANES / TEAM, TURNS = ROW_LANES / LANES;
const uint TREE = SUM_LANES / 4; // lanes that have a part of the sum of all scores

shared vec4 normed[LANES * PER];
const uint AHEAD = 8;                     // values of shared memory that are loaded at once
shared float part[ROW_LANES / 4 + AHEAD]; // (TURNS, subgroups)
shared float prob[MAX_EXPERTS];   // what weighs an expert
shared vec4 tree[TREE / 4];
shared uint ended; // workgroups before this one

vec4 v[PER], w[PER]; // runs of the row and of the norm's weights

uint norm_lane() { return gl_SubgroupSize >= 8 ? subgroup_lane() : gl_LocalInvocationID.x; } // as in rms_norm_q8

void ask(uint row)
{
    Floats4 x = Floats4(advance(a.X, row, a.Cols * 4));
    uint runs = a.Cols / 4;
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = u * LANES + norm_lane();
        v[u] = i < runs ? x.f[i] : vec4(0);
        w[u] = i < runs ? Floats4(a.W).f[i] : vec4(0);
    }
}

// norm makes the normed row of v.
void norm()
{
    float squares[TURNS];
    [[unroll]] for (uint t = 0; t < TURNS; t++)
        squares[t] = 0;
    [[unroll]] for (uint u = 0; u < PER; u++)
        squares[u % TURNS] += sum_squares(v[u]);
    [[unroll]] for (uint t = 0; t < TURNS; t++) {
        float some = sum_within(squares[t], gl_SubgroupSize);
        if (gl_SubgroupInvocationID == 0)
            part[t * gl_NumSubgroups + gl_SubgroupID] = some;
    }
    barrier();
    float sum = 0;
    for (uint i = 0; i < TURNS * gl_NumSubgroups; i += AHEAD) {
        float some[AHEAD];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            some[u] = part[i + u];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            sum += i + u < TURNS * gl_NumSubgroups ? some[u] : 0;
    }
    float scale = norm_scale(sum, a.Cols, a.Eps);
    [[unroll]] for (uint u = 0; u < PER; u++)
        v[u] = normed_run(v[u], scale, w[u]);
}

void store(uint row)
{
    norm();
    uint runs = a.Cols / 4, bytes = (a.Rows * a.Cols + 15) & ~15u;
    OutFloats4 dst = OutFloats4(advance(a.Dst, row, a.Cols * 4));
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = u * LANES + norm_lane(), block = (row * runs + i) / 8;
        if (i < runs)
            dst.f[i] = v[u];
        if (gl_SubgroupSize >= 8)
            put_q8_within(v[u], i < runs, a.Bytes, advance(a.Bytes, bytes, 1), block);
        else
            put_q8(v[u], i < runs, a.Bytes, advance(a.Bytes, bytes, 1), block);
    }
}

Eight normed_chunk(uint i) { return Eight(normed[2 * i], normed[2 * i + 1]); }

// logit is the score of an expert of the row that was asked for, for the first lane of its team.
float logit(uint expert)
{
    uint lane = subgroup_lane(), member = lane % TEAM, chunks = a.Cols / 8;
    uvec2 from = advance(a.Router, expert, a.Cols * BYTES);
    Chunk raw[UNROLL]; // asked for before the norm is known
    [[unroll]] for (uint u = 0; u < UNROLL; u++)
        raw[u] = load_chunk(from, min(u * TEAM + member, chunks - 1));
    norm();
    [[unroll]] for (uint u = 0; u < PER; u++)
        normed[u * LANES + norm_lane()] = v[u];
    barrier();
    float sum = 0;
    [[unroll]] for (uint u = 0; u < UNROLL; u++) {
        uint i = u * TEAM + member;
        if (i < chunks)
            sum = dot_chunk(raw[u], normed_chunk(i), sum);
    }
    for (uint i = UNROLL * TEAM + member; i < chunks; i += TEAM)
        sum = dot_chunk(load_chunk(from, i), normed_chunk(i), sum);
    sum = sum_within(sum, min(TEAM, gl_SubgroupSize));
    if (TEAM <= gl_SubgroupSize)
        return sum;
    if (gl_SubgroupInvocationID == 0)
        part[gl_SubgroupID] = sum; // all have read what was there
    barrier();
    uint parts = TEAM / gl_SubgroupSize;
    sum = 0;
    for (uint p = 0; p < parts; p++)
        sum += part[lane / TEAM * parts + p];
    return sum;
}

// last is true for the last of a row's workgroups to end, once all scores are there.
bool last(uint row, uint workgroups)
{
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) {
        ended = atomicAdd(Counts(a.Counters).n[row], 1);
        if (ended == workgroups - 1)
            Counts(a.Counters).n[row] = 0; // for the next dispatch
    }
    barrier();
    memoryBarrierBuffer();
    return ended == workgroups - 1;
}

float max_all(float x)
{
    x = subgroupMax(x);
    if (gl_SubgroupInvocationID == 0)
        part[gl_SubgroupID] = x;
    barrier();
    for (uint i = 0; i < gl_NumSubgroups; i += AHEAD) {
        float some[AHEAD];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            some[u] = part[i + u];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            x = i + u < gl_NumSubgroups ? max(x, some[u]) : x;
    }
    return x;
}

// sum_all adds prob up, as sum_lanes of reduce.glsl does for SUM_LANES lanes.
float sum_all(uint lane)
{
    if (lane < TREE) {
        precise vec4 runs = vec4(0); // of lanes TREE apart
        for (uint e = lane; e < a.Experts; e += SUM_LANES) {
            vec4 p;
            [[unroll]] for (uint k = 0; k < 4; k++)
                p[k] = e + k * TREE < a.Experts ? prob[e + k * TREE] : 0;
            runs = runs + p;
        }
        precise vec2 two = runs.xy + runs.zw;
        precise float sum = two.x + two.y;
        tree[lane / 4][lane % 4] = sum;
    }
    barrier();
    vec4 t[TREE / 4];
    [[unroll]] for (uint i = 0; i < TREE / 4; i++)
        t[i] = tree[i];
    [[unroll]] for (uint s = TREE / 8; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++) {
            precise vec4 sum = t[i] + t[i + s];
            t[i] = sum;
        }
    precise vec2 two = t[0].xy + t[0].zw;
    precise float sum = two.x + two.y;
    return sum;
}

// rate fills prob and score.
void rate(uint row, uint lane)
{
    Left x = Left(advance(a.Scores, row, a.Experts * 4));
    bool biased = (a.Bias.x | a.Bias.y) != 0;
    float top = NONE;
    for (uint e = lane; e < a.Experts; e += LANES) {
        float p = x.f[e];
        gone[e] = !looks() || is_resident(a.Residents, e) ? 0 : 1;
        prob[e] = p;
        top = p > top ? p : top; // what is not a number is not
    }
    float total = 1;
    if (gating() == SOFTMAX) {
        top = max_all(top);
        for (uint e = lane; e < a.Experts; e += LANES) {
            precise float p = exp(prob[e] - top);
            prob[e] = p;
        }
        barrier();
        total = sum_all(lane);
    }
    for (uint e = lane; e < a.Experts; e += LANES) {
        precise float p = prob[e];
        if (gating() == SOFTMAX)
            p = p / total;
        else if (gating() == SIGMOID)
            p = sigmoid(p);
        precise float s = biased ? p + Floats(a.Bias).f[e] : p;
        prob[e] = p;
        score[e] = rated(s);
    }
    if (lane < AHEAD && a.Experts + lane < MAX_EXPERTS)
        score[a.Experts + lane] = NONE; // for rank, which loads AHEAD at once
    barrier();
}

// rank fills chosen, the lowest expert among equals first: two neighbouring lanes count what is better than their expert, of
// AHEAD scores in turn.
void rank(uint lane)
{
    for (uint e = lane / 2; e < a.Experts; e += LANES / 2) {
        float mine = score[e];
        uint better = 0;
        for (uint o = lane % 2 * AHEAD; o < a.Experts; o += 2 * AHEAD) {
            float some[AHEAD];
            [[unroll]] for (uint u = 0; u < AHEAD; u++)
                some[u] = score[o + u];
            [[unroll]] for (uint u = 0; u < AHEAD; u++)
                better += some[u] > mine || some[u] == mine && o + u < e ? 1 : 0;
        }
        better += subgroupShuffleXor(better, 1);
        if (better < a.Used)
            chosen[better] = e;
    }
    barrier();
}

void main()
{
    uint workgroups = (a.Experts + TEAMS - 1) / TEAMS, row = group() / (workgroups + 1), nth = group() % (workgroups + 1);
    if (row >= a.Rows)
        return;
    ask(row);
    if (nth == workgroups) {
        store(row);
        return;
    }
    uint lane = subgroup_lane(), expert = nth * TEAMS + lane / TEAM;
    float sum = logit(min(expert, a.Experts - 1));
    if (lane % TEAM == 0 && expert < a.Experts)
        Left(advance(a.Scores, row, a.Experts * 4)).f[expert] = sum;
    if (!last(row, workgroups))
        return;
    rate(row, lane);
    if (a.Groups > 1)
        limit(lane);
    rank(lane);
    for (uint k = lane; k < a.Used; k += LANES)
        share[k] = prob[chosen[k]];
    weigh(row, lane);
}
