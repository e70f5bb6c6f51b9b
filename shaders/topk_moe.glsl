// What the variants of topk_moe share.

#ifndef ROUTED // else the includer has them, under the same names
layout(push_constant, std430) uniform Args {
    uvec2 X, Bias, IDs, Weights, Residents, Scales;
    uint Rows, Experts, Used, Gating, Groups, GroupsUsed;
    float Scale;
    uint GroupBest;
} a;
#endif
#include "lookup.glsl"
#include "finite.glsl"

const uint SOFTMAX = 0, SIGMOID = 1, LATE = 2, SPARSE = 3; // of all; each by itself; softmax of the chosen ones; see mixed
const uint NORMALISED = 4;                                 // beside one of these
const float NONE = -3.0e38, ALL = 3.0e38;                  // not infinities: a driver need not honour them
const float LEAST = 6.103515625e-05;                       // of a sum that is divided by

// What chooses an expert, and the chosen ones. Memory is scarce: limit has its groups' sums, as bits, where the
// chosen ones come later, and what the chosen ones weigh takes the place of the scores.
shared float score[MAX_EXPERTS];
shared uint chosen[MAX_EXPERTS];

#define share score
float group_sum(uint g) { return uintBitsToFloat(chosen[g]); }

float sigmoid(float x)
{
    precise float p = 1.0 / (1.0 + exp(-max(x, -88.0)));
    return unless_nan(x, p);
}

// rated is what chooses an expert. One whose score is not a number is chosen before all others: so that its row is not a number either.
float rated(float s) { return is_nan(s) ? ALL : s; }

#ifdef ROUTED // what is not there it asks for beside the scores
shared uint gone[MAX_EXPERTS];
#endif

bool looks() { return (a.Residents.x | a.Residents.y) != 0; }

uint gating() { return a.Gating & 3; }

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

// weigh stores the chosen ones of a row and their weights, and looks whether they are there; share has what they weigh, each put
// there by any lane.
void weigh(uint row, uint lane)
{
    lookup_begin(lane);
    barrier();
    Lookup lookup = Lookup(uvec2(0), uvec2(0));
    bool resident = true; // the lane's first: under way beside the others
    if (looks()) {
        lookup = lookup_at(a.Residents);
#ifndef ROUTED
        resident = is_resident(a.Residents, chosen[min(lane, a.Used - 1)]);
#endif
    }
    if (gating() == LATE) {
        float top = share[0];
        for (uint k = 1; k < a.Used; k++)
            top = max(top, share[k]);
        barrier();
        for (uint k = lane; k < a.Used; k += LANES) {
            precise float w = exp(share[k] - top);
            share[k] = w;
        }
        barrier();
    }
    precise float total = 0;
    for (uint k = 0; k < a.Used; k += 8) { // loaded at once
        float some[8];
        [[unroll]] for (uint u = 0; u < 8; u++)
            some[u] = share[k + u];
        [[unroll]] for (uint u = 0; u < 8; u++)
            total = total + (k + u < a.Used ? some[u] : 0);
    }
    bool divide = (a.Gating & NORMALISED) != 0 || gating() == LATE;
    OutWords ids = OutWords(advance(a.IDs, row, a.Used * 4));
    Floats weights = Floats(advance(a.Weights, row, a.Used * 4));
    for (uint k = lane; k < a.Used; k += LANES) {
        precise float w = share[k];
        if (divide)
            w = w / unless_nan(total, max(total, LEAST));
        w = w * a.Scale;
#ifndef ROUTED
        if ((a.Scales.x | a.Scales.y) != 0)
            w = w * Floats(a.Scales).f[chosen[k]];
#endif
        ids.w[k] = chosen[k];
        weights.f[k] = w;
    }
    if (looks()) {
        for (uint k = lane; k < a.Used; k += LANES)
#ifdef ROUTED
            lookup_one(lookup, k, chosen[k], gone[chosen[k]] == 0);
#else
            lookup_one(lookup, k, chosen[k], k == lane ? resident : is_resident(a.Residents, chosen[k]));
#endif
        lookup_end(lookup, lane);
    }
}
