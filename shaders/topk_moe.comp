#version 460
// topk_moe: the Used experts of each row with the largest scores, by rank, and their weights. One workgroup per row.
//
// Of few experts each lane counts the better ones than its own: no lane waits for another. Of many that would be too much, and
// the lanes look for the best one together, Used times.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"
#include "topk_moe.glsl"

const uint FEW = 4 * LANES; // experts

shared float prob[MAX_EXPERTS]; // what weighs an expert
shared uint tree_at[LANES];

// best is where the largest of n values is that score has from `from` on, the lowest place among equals. All lanes call it.
uint best(uint from, uint n)
{
    uint lane = gl_LocalInvocationID.x;
    float top = NONE;
    uint at = from + n;
    for (uint i = lane; i < n; i += LANES)
        if (score[from + i] > top) {
            top = score[from + i];
            at = from + i;
        }
    tree[lane] = top;
    tree_at[lane] = at;
    barrier();
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        if (lane < s && (tree[lane + s] > tree[lane] || tree[lane + s] == tree[lane] && tree_at[lane + s] < tree_at[lane])) {
            tree[lane] = tree[lane + s];
            tree_at[lane] = tree_at[lane + s];
        }
        barrier();
    }
    uint found = min(tree_at[0], from + n - 1); // where all are taken, or -infinity, there is no largest
    barrier();
    return found;
}

// rate fills prob and score.
void rate(Floats x, uint lane)
{
    float top = NONE;
    for (uint i = lane; i < a.Experts; i += LANES)
        top = max(top, x.f[i]);
    top = max_lanes(top);
    precise float total = 0;
    for (uint i = lane; i < a.Experts; i += LANES) {
        precise float p = x.f[i];
        if (gating() == SOFTMAX) {
            p = exp(p - top);
            total = total + p;
        } else if (gating() == SIGMOID)
            p = sigmoid(p);
        prob[i] = p;
    }
    total = sum_lanes(total);
    for (uint i = lane; i < a.Experts; i += LANES) {
        precise float p = gating() == SOFTMAX ? prob[i] / total : prob[i];
        precise float s = (a.Bias.x | a.Bias.y) != 0 ? p + Floats(a.Bias).f[i] : p;
        prob[i] = p;
        score[i] = rated(s);
    }
    barrier();
}

// rank fills chosen. The lowest expert among equals is the better one.
void rank(uint lane)
{
    if (a.Experts > FEW) {
        for (uint k = 0; k < a.Used; k++) {
            uint e = best(0, a.Experts);
            if (lane == 0) {
                chosen[k] = e;
                score[e] = NONE;
            }
            barrier();
        }
        return;
    }
    for (uint e = lane; e < a.Experts; e += LANES) {
        float mine = score[e];
        uint better = 0;
        for (uint o = 0; o < a.Experts; o++)
            better += score[o] > mine || score[o] == mine && o < e ? 1 : 0;
        if (better < a.Used)
            chosen[better] = e;
    }
    barrier();
}

const float NEAR = 0.02; // of a score, how far another one may be below it

// mixed is the share of the k'th chosen expert in the softmax of the scores near its own, without those of experts chosen before it.
float mixed(uint k)
{
    float own = prob[chosen[k]];
    precise float total = 0;
    for (uint e = 0; e < a.Experts; e++) {
        bool before = false;
        for (uint i = 0; i < k; i++)
            before = before || chosen[i] == e;
        float other = prob[e];
        precise float gap = own - other;
        precise float width = NEAR * max(abs(other), own);
        if (!before && gap <= width)
            total = total + exp(-gap);
    }
    precise float part = 1.0 / total;
    return unless_nan(own, part);
}

void main()
{
    uint row = group(), lane = gl_LocalInvocationID.x;
    if (row >= a.Rows)
        return;
    rate(Floats(advance(a.X, row, a.Experts * 4)), lane);
    if (a.Groups > 1)
        limit(lane);
    rank(lane);
    for (uint k = lane; k < a.Used; k += LANES)
        share[k] = gating() == SPARSE ? mixed(k) : prob[chosen[k]];
    weigh(row, lane);
}
