#version 460
// topk_moe, to the same bits, of up to PER × LANES experts, whose scores the lanes hold: one subgroup per row, or few. Scores are
// compared as integers of the same order, which subgroups find the greatest of in one instruction where the device has it.
#extension GL_GOOGLE_include_directive : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "subgroup.glsl"
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "topk_moe.glsl"

layout(constant_id = 1) const uint PER = DEFAULT_PER;

const uint RUNS = SUM_LANES / LANES; // the sum of all is that of SUM_LANES lanes

shared uint among[LANES]; // of subgroups, of lanes

// order maps floats to integers above 0 of the same order, and places maps them back.
uint order(float f)
{
    uint u = floatBitsToUint(f);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0;
    return (u & 0x80000000u) == 0 || u == 0x80000000u ? u | 0x80000000u : ~u;
}
float place(uint k) { return uintBitsToFloat((k & 0x80000000u) != 0 ? k & 0x7fffffff : ~k); }

uint greatest(uint v)
{
    v = subgroupMax(v);
    if (gl_NumSubgroups == 1)
        return v;
    if (gl_SubgroupInvocationID == 0)
        among[gl_SubgroupID] = v;
    barrier();
    for (uint i = 0; i < gl_NumSubgroups; i++)
        v = max(v, among[i]);
    barrier();
    return v;
}

// sum_tree is what sum_lanes of reduce.glsl makes of runs: lane i of SUM_LANES has runs[i / LANES] of lane i % LANES.
float sum_tree(float runs[RUNS], uint lane)
{
    [[unroll]] for (uint s = RUNS / 2; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++) {
            precise float t = runs[i] + runs[i + s];
            runs[i] = t;
        }
    precise float sum = runs[0];
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        float other;
        if (s < gl_SubgroupSize)
            other = subgroupShuffleXor(sum, s);
        else {
            among[lane] = floatBitsToUint(sum);
            barrier();
            other = uintBitsToFloat(among[lane ^ s]);
            barrier();
        }
        sum = sum + other;
    }
    return sum;
}

// softmax makes probabilities of x.
void softmax(inout float x[PER], uint lane)
{
    uint top = 0;
    [[unroll]] for (uint u = 0; u < PER; u++)
        if (u * LANES + lane < a.Experts)
            top = max(top, order(x[u]));
    top = greatest(top);
    float most = top == 0 ? NONE : max(place(top), NONE);
    float runs[RUNS];
    [[unroll]] for (uint i = 0; i < RUNS; i++)
        runs[i] = 0;
    [[unroll]] for (uint u = 0; u < PER; u++)
        if (u * LANES + lane < a.Experts) {
            precise float p = exp(x[u] - most);
            precise float t = runs[u % RUNS] + p;
            x[u] = p;
            runs[u % RUNS] = t;
        }
    float total = sum_tree(runs, lane);
    [[unroll]] for (uint u = 0; u < PER; u++) {
        precise float p = x[u] / total;
        x[u] = p;
    }
}

void main()
{
    uint row = group(), lane = subgroup_lane();
    if (row >= a.Rows)
        return;
    Floats x = Floats(advance(a.X, row, a.Experts * 4));
    bool biased = (a.Bias.x | a.Bias.y) != 0;
    float p[PER], s[PER];
    uint keys[PER];
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint e = u * LANES + lane;
        p[u] = e < a.Experts ? x.f[e] : 0;
        s[u] = biased && e < a.Experts ? Floats(a.Bias).f[e] : 0;
    }
    if (gating() == SOFTMAX)
        softmax(p, lane);
    [[unroll]] for (uint u = 0; u < PER; u++) {
        if (gating() == SIGMOID)
            p[u] = sigmoid(p[u]);
        precise float t = biased ? p[u] + s[u] : p[u];
        s[u] = rated(t);
    }
    if (a.Groups > 1) {
        [[unroll]] for (uint u = 0; u < PER; u++)
            if (u * LANES + lane < a.Experts)
                score[u * LANES + lane] = s[u];
        barrier();
        limit(lane);
        [[unroll]] for (uint u = 0; u < PER; u++)
            if (u * LANES + lane < a.Experts)
                s[u] = score[u * LANES + lane];
        barrier();
    }
    [[unroll]] for (uint u = 0; u < PER; u++)
        keys[u] = u * LANES + lane < a.Experts ? order(s[u]) : 0; // 0 is chosen no more

    for (uint k = 0; k < a.Used; k++) {
        uint key = 0, at = 0;
        [[unroll]] for (uint u = 0; u < PER; u++)
            if (keys[u] > key) {
                key = keys[u];
                at = u * LANES + lane;
            }
        // The lowest of the best.
        uint e = ~greatest(key == greatest(key) ? ~at : 0);
        if (e % LANES == lane) {
            chosen[k] = e;
            [[unroll]] for (uint u = 0; u < PER; u++)
                if (u == e / LANES) {
                    keys[u] = 0;
                    share[k] = p[u];
                }
        }
    }
    weigh(row, lane);
}
