#version 460
// mul_mat_vec, wide: Dst (N, M) = X (N, K) · Wᵀ for few rows of X, W not quantised, rows of both on 16 bytes.
// The same teams as in mul_mat_vec_int8; a lane's turn is a chunk of 8 values, 16 bytes of halves.
#extension GL_GOOGLE_include_directive : require
#include "team.glsl"

#include "wide.glsl"

void main()
{
    if (!team_begin())
        return;
    uvec2 w[NUM_ROWS], x[NUM_COLS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = advance(weights_of(team_row(r)), team_row(r).row, a.K * BYTES);
    [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
        x[c] = advance(a.X, team_col(c), a.XStride * 4);

    uint chunks = a.K / 8, i = member;
    for (; i + (UNROLL - 1) * TEAM < chunks; i += UNROLL * TEAM) {
        Chunk raw[UNROLL][NUM_ROWS];
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = load_chunk(w[r], i + u * TEAM);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
                Eight xv = load_x(x[c], i + u * TEAM);
                [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                    acc[r][c] = dot_chunk(raw[u][r], xv, acc[r][c]);
            }
    }
    if (UNROLL > 1)
        for (; i < chunks; i += TEAM)
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++) {
                Chunk raw = load_chunk(w[r], i);
                [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                    acc[r][c] = dot_chunk(raw, load_x(x[c], i), acc[r][c]);
            }
    team_end();
}
