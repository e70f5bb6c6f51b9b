#version 460
// group_experts: which pairs of a row and an expert are each expert's: Pairs (Count) lists them expert by expert, Tiles cuts
// that list into pieces of up to Cols pairs of one expert. One workgroup per expert.
//
// Expert e's first tile is number start / Cols + e, where start is its place in Pairs: never less than all those before it
// need, so no workgroup has to know of another. A tile that is not needed has no pairs.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutWords4 { uvec4 w[]; };

layout(push_constant, std430) uniform Args {
    uvec2 IDs, Pairs, Tiles;
    uint Count, Experts, Cols, pad0;
} a;

shared uint lesser[LANES], same[LANES]; // pairs of lower experts, and of this one, in a lane's run

const uint AHEAD = 4;    // loads of 4 pairs' experts that are under way at once
const uint NOBODY = ~0u; // is the expert of a pair that is not there

uvec4 experts_of(uint i)
{
    if (i + 4 <= a.Count && (a.IDs.x & 15u) == 0) // the rows may be some of a step's
        return Words4(a.IDs).w[i / 4];
    uvec4 ids = uvec4(NOBODY);
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (i + c < a.Count)
            ids[c] = Words(a.IDs).w[i + c];
    return ids;
}

void load_ahead(uint i, out uvec4 ids[AHEAD])
{
    [[unroll]] for (uint j = 0; j < AHEAD; j++)
        ids[j] = experts_of(i + 4 * j);
}

void main()
{
    uint e = group(), lane = gl_LocalInvocationID.x;
    if (e >= a.Experts)
        return;
    uint run = (a.Count + LANES * 4 * AHEAD - 1) / (LANES * 4 * AHEAD) * 4 * AHEAD;
    uint from = lane * run, to = min(from + run, a.Count);
    uint less = 0, equal = 0;
    uvec4 ids[AHEAD];
    for (uint i = from; i < to; i += 4 * AHEAD) {
        load_ahead(i, ids);
        [[unroll]] for (uint j = 0; j < 4 * AHEAD; j++) {
            less += ids[j / 4][j % 4] < e ? 1 : 0;
            equal += ids[j / 4][j % 4] == e ? 1 : 0;
        }
    }
    lesser[lane] = less;
    same[lane] = equal;
    barrier();
    uint start = 0, count = 0, before = 0;
    for (uint i = 0; i < LANES; i++) {
        start += lesser[i];
        count += same[i];
        before += i < lane ? same[i] : 0;
    }
    uint at = start + before;
    for (uint i = equal > 0 ? from : to; i < to; i += 4 * AHEAD) {
        load_ahead(i, ids);
        [[unroll]] for (uint j = 0; j < 4 * AHEAD; j++)
            if (ids[j / 4][j % 4] == e)
                OutWords(a.Pairs).w[at++] = i + j;
    }
    uint first = start / a.Cols + e, next = (start + count) / a.Cols + e + 1;
    for (uint t = first + lane; t < next; t += LANES) {
        uint done = min((t - first) * a.Cols, count);
        OutWords4(a.Tiles).w[t] = uvec4(e, start + done, min(a.Cols, count - done), 0);
    }
}
