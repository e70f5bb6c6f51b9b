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

Chunk none;

// chunk is the i'th of all pairs' of row m.
Chunk chunk(uint m, uint i, uint chunks)
{
    uvec2 w = base[i / chunks];
    if (given(w))
        return load_chunk(w_row(w, m), i % chunks);
    return none;
}

float part(Chunk raw, uint i, uint chunks, uvec2 x, uvec2 s)
{
    uint pair = i / chunks, c = i % chunks;
    if (!given(base[pair]))
        return 0;
    return share[pair] * dot_chunk(raw, c, load_x16(x, s, pair * a.K + first_of(c)), load_x16(x, s, pair * a.K + second_of(c)));
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
    uint m[NUM_ROWS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        m[r] = team_row(r).row;
    uvec2 x = advance(a.X, col0 * a.Used, a.K), s = advance(a.S, col0 * a.Used, a.K / 4);
    uint chunks = a.K / 32, i = member;
    for (; i + (UNROLL - 1) * TEAM < a.Used * chunks; i += UNROLL * TEAM) {
        Chunk raw[UNROLL][NUM_ROWS];
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = chunk(m[r], i + u * TEAM, chunks);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                acc[r][0] += part(raw[u][r], i + u * TEAM, chunks, x, s);
    }
    if (UNROLL > 1)
        for (; i < a.Used * chunks; i += TEAM)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                acc[r][0] += part(chunk(m[r], i, chunks), i, chunks, x, s);
    team_end();
}
