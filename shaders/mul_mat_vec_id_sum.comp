#version 460
// mul_mat_vec_id_sum: Dst (N, M) = Residual + the sum over a row's Used experts of Weights * (X of the pair · Wᵀ of its expert), for
// few rows, X in bytes: mul_mat_vec_id and sum_experts in one. Experts whose address is 0 add nothing.
//
// A team's sum goes through the chunks of all the row's pairs, one behind another, as mul_mat_vec_int8 goes through those of a row.
#extension GL_GOOGLE_include_directive : require
#define EXPERT_SUM
#include "team.glsl"
#include "int8.glsl"
#include "int8_types.glsl"

shared uvec2 base[MAX_USED]; // where the matrices of the row's experts are
shared float share[MAX_USED];

const uint AHEAD = 8; // values of shared memory that are loaded at once

Chunk none;
uint m[NUM_ROWS]; // the team's rows
float of_pair;    // 1 / chunks of a pair

// pair_of is i / chunks for i below 2^18: its middle lies further from the next whole number than what is rounded.
uint pair_of(uint i) { return uint((float(i) + 0.5) * of_pair); }

// chunk is the i'th of all pairs' of a row. With sure its expert is there: then it is a load that stands in no branch, of which
// many can be under way.
Chunk chunk(uint row, uint i, uint chunks, bool sure)
{
    uint pair = pair_of(i);
    uvec2 w = base[pair];
    if (sure || given(w))
        return load_chunk(w_row(w, row), i - pair * chunks);
    return none;
}

float part(Chunk raw, uint i, uint chunks, uvec2 x, uvec2 s, bool sure)
{
    uint pair = pair_of(i), c = i - pair * chunks;
    if (!sure && !given(base[pair]))
        return 0;
    return share[pair] * dot_chunk(raw, c, load_x16(x, s, pair * a.K + first_of(c)), load_x16(x, s, pair * a.K + second_of(c)));
}

// all_there reports whether all experts of the row are.
bool all_there()
{
    bool all = true;
    for (uint k = 0; k < a.Used; k += AHEAD) {
        uvec2 some[AHEAD];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            some[u] = base[min(k + u, a.Used - 1)];
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            all = all && given(some[u]);
    }
    return all;
}

void sum_up(uvec2 x, uvec2 s, bool sure)
{
    uint chunks = a.K / 32, i = member;
    for (; i + (UNROLL - 1) * TEAM < a.Used * chunks; i += UNROLL * TEAM) {
        Chunk raw[UNROLL][NUM_ROWS];
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = chunk(m[r], i + u * TEAM, chunks, sure);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                acc[r][0] += part(raw[u][r], i + u * TEAM, chunks, x, s, sure);
    }
    if (UNROLL > 1)
        for (; i < a.Used * chunks; i += TEAM)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                acc[r][0] += part(chunk(m[r], i, chunks, sure), i, chunks, x, s, sure);
}

void main()
{
    if (!team_begin())
        return;
    init_types();
    for (uint k = gl_LocalInvocationID.x; k < a.Used; k += LANES) {
        uint pair = col0 * a.Used + k;
        base[k] = Words2(a.Table).w[Words(a.IDs).w[pair]];
        share[k] = Floats(a.Weights).f[pair];
    }
    barrier();
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        m[r] = team_row(r).row;
    of_pair = 32.0 / float(a.K);
    uvec2 x = advance(a.X, col0 * a.Used, a.K), s = advance(a.S, col0 * a.Used, a.K / 4);
    if (all_there())
        sum_up(x, s, true);
    else
        sum_up(x, s, false);
    team_end();
}
