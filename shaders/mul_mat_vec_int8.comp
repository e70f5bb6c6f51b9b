#version 460
// mul_mat_vec, with ROPE mul_mat_vec_rope and with EXPERTS mul_mat_vec_id, 8-bit: Dst (N, M) = X (N, K) · Wᵀ for few rows of X, which quantize_q8 has
// made bytes: X and S.
//
// A team of TEAM lanes makes NUM_ROWS × NUM_COLS sums. A lane's turn is a chunk: the 32 values of W that
// it gets with the widest loads the type allows, two runs of 16 in the order of X; of super-blocks a part, see parts.glsl. The bytes of
// UNROLL chunks of every row are asked for before the first is used.
#extension GL_GOOGLE_include_directive : require
#ifdef ROPE
#include "team_rope.glsl"
#else
#include "team.glsl"
#endif
#include "int8.glsl"
#if !defined(LONGS) && !defined(EXPERTS) && (defined(TYPE_Q3_K) || defined(TYPE_Q4_K) || defined(TYPE_Q5_K) || defined(TYPE_IQ4_XS))
#include "parts.glsl"

void main()
{
    if (!team_begin())
        return;

    Weights w[NUM_ROWS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++) {
        Place p = team_row(r);
        w[r] = weights_at(advance(weights_of(p), p.row, a.K / 256 * BLOCK_BYTES));
    }
    uvec2 x[NUM_COLS], s[NUM_COLS];
    [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
        x[c] = advance(advance(a.X, x_row(c), a.K), 1, first_value());
        s[c] = advance(advance(a.S, x_row(c), a.K / 4), first_value() / 32, 8);
    }
#ifdef ROPE
    ask_more();
#endif

    uint parts = a.K / 64, mine = member < parts ? (parts - 1 - member) / TEAM + 1 : 0, i = 0;
    for (; i + UNROLL <= mine; i += UNROLL) {
        Part raw[UNROLL][NUM_ROWS];
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = load_part(w[r], i + u);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
                X64 part = load_x64(x[c], s[c], i + u);
                [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                    acc[r][c] += dot_part(raw[u][r], w[r], part);
            }
    }
    if (UNROLL > 1)
        for (; i < mine; i++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++) {
                Part raw = load_part(w[r], i);
                [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                    acc[r][c] += dot_part(raw, w[r], load_x64(x[c], s[c], i));
            }
    team_end();
}
#else
#include "int8_types.glsl"

void main()
{
    if (!team_begin())
        return;
    init_types();

    Row w[NUM_ROWS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = w_row(weights_of(team_row(r)), team_row(r).row);
    uvec2 x[NUM_COLS], s[NUM_COLS];
    [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
        x[c] = advance(a.X, x_row(c), a.K);
        s[c] = advance(a.S, x_row(c), a.K / 4);
    }
#ifdef ROPE
    ask_more();
#endif

    uint chunks = a.K / 32, i = member;
    for (; i + (UNROLL - 1) * TEAM < chunks; i += UNROLL * TEAM) {
        Chunk raw[UNROLL][NUM_ROWS];
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = load_chunk(w[r], i + u * TEAM);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
                X16 x1 = load_x16(x[c], s[c], first_of(i + u * TEAM));
                X16 x2 = load_x16(x[c], s[c], second_of(i + u * TEAM));
                [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                    acc[r][c] += dot_chunk(raw[u][r], i + u * TEAM, x1, x2);
            }
    }
    if (UNROLL > 1)
        for (; i < chunks; i += TEAM)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++) {
                Chunk raw = load_chunk(w[r], i);
                [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                    acc[r][c] += dot_chunk(raw, i, load_x16(x[c], s[c], first_of(i)), load_x16(x[c], s[c], second_of(i)));
            }
    team_end();
}
#endif
