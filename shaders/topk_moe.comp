#version 460
// topk_moe: the Used experts of each row with the largest scores, by rank, and their weights. One workgroup per row.
//
// Of few experts each lane counts the better ones than its own: no lane waits for another. Of many that would be too much, and
// the lanes look for the best one together, Used times.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Bias, IDs, Weights;
    uint Rows, Experts, Used, Gating, Normalise, Groups, GroupsUsed;
    float Scale;
    uint GroupBest, pad0;
} a;

const uint SOFTMAX = 0, SIGMOID = 1, LATE = 2; // of all; each by itself; softmax of the chosen ones
const float NONE = -3.0e38;                    // not -infinity: a driver need not honour it
const uint FEW = 4 * LANES;                    // experts
const float LEAST = 6.103515625e-05;           // of a sum that is divided by

// What weighs an expert, what chooses it, and the chosen ones. Memory is scarce: limit has its groups' sums, as bits, where the
// chosen ones come later, and what the chosen ones weigh takes the place of the scores.
shared float prob[MAX_EXPERTS], score[MAX_EXPERTS];
shared uint chosen[MAX_EXPERTS];
shared uint tree_at[LANES];

#define share score
float group_sum(uint g) { return uintBitsToFloat(chosen[g]); }

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
    uint found = min(tree_at[0], from + n - 1); // where all are NaN there is no largest
    barrier();
    return found;
}

// weigh fills prob and score.
void weigh(Floats x, uint lane)
{
    float top = NONE;
    for (uint i = lane; i < a.Experts; i += LANES)
        top = max(top, x.f[i]);
    top = max_lanes(top);
    precise float total = 0;
    for (uint i = lane; i < a.Experts; i += LANES) {
        precise float p = x.f[i];
        if (a.Gating == SOFTMAX) {
            p = exp(p - top);
            total = total + p;
        } else if (a.Gating == SIGMOID)
            p = 1.0 / (1.0 + exp(-max(p, -88.0)));
        prob[i] = p;
    }
    total = sum_lanes(total);
    for (uint i = lane; i < a.Experts; i += LANES) {
        precise float p = a.Gating == SOFTMAX ? prob[i] / total : prob[i];
        precise float s = (a.Bias.x | a.Bias.y) != 0 ? p + Floats(a.Bias).f[i] : p;
        prob[i] = p;
        score[i] = isnan(s) ? NONE : s;
    }
    barrier();
}

// limit leaves only the experts of the GroupsUsed groups whose GroupBest best, 1 or 2, have the largest sum of scores.
void limit(uint lane)
{
    uint size = a.Experts / a.Groups;
    for (uint g = lane; g < a.Groups; g += LANES) {
        float first = NONE, second = NONE;
        for (uint i = 0; i < size; i++) {
            float s = score[g * size + i];
            second = max(second, min(first, s));
            first = max(first, s);
        }
        precise float sum = size > 1 && a.GroupBest > 1 ? first + second : first;
        chosen[g] = floatBitsToUint(sum);
    }
    barrier();
    for (uint g = lane; g < a.Groups; g += LANES) {
        uint better = 0;
        for (uint o = 0; o < a.Groups; o++)
            better += group_sum(o) > group_sum(g) || group_sum(o) == group_sum(g) && o < g ? 1 : 0;
        if (better >= a.GroupsUsed)
            for (uint i = 0; i < size; i++)
                score[g * size + i] = NONE;
    }
    barrier();
}

// rank fills chosen. The lowest expert among equals is the better one; what is not a number is worse than all.
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

void main()
{
    uint row = group(), lane = gl_LocalInvocationID.x;
    if (row >= a.Rows)
        return;
    weigh(Floats(advance(a.X, row, a.Experts * 4)), lane);
    if (a.Groups > 1)
        limit(lane);
    rank(lane);
    float top = prob[chosen[0]];
    for (uint k = 1; k < a.Used; k++)
        top = max(top, prob[chosen[k]]);
    if (a.Gating == LATE) {
        for (uint k = lane; k < a.Used; k += LANES) {
            precise float w = exp(prob[chosen[k]] - top);
            share[k] = w;
        }
    } else
        for (uint k = lane; k < a.Used; k += LANES)
            share[k] = prob[chosen[k]];
    barrier();
    precise float total = 0;
    for (uint k = 0; k < a.Used; k++)
        total = total + share[k];
    bool divide = a.Normalise != 0 || a.Gating == LATE;
    OutWords ids = OutWords(advance(a.IDs, row, a.Used * 4));
    Floats weights = Floats(advance(a.Weights, row, a.Used * 4));
    for (uint k = lane; k < a.Used; k += LANES) {
        precise float w = share[k];
        if (divide)
            w = w / max(total, LEAST);
        w = w * a.Scale;
        ids.w[k] = chosen[k];
        weights.f[k] = w;
    }
}
