#version 460
// mul_mat_vec_int8 for devices that run many subgroups at once: Dst (N, M) = X (N, K) · Wᵀ for few rows of X as bytes, by as many
// workgroups as are at work side by side. Each makes outputs turn by turn; a lane has UNROLL chunks of a row, which are all of its part, and asks for
// those of its next row as it uses this one's, so that loads are always under way.
#extension GL_GOOGLE_include_directive : require
#define PERSISTENT
#include "team.glsl"
#include "int8.glsl"
#include "parts.glsl"

const bool HOLD = NUM_COLS == 1 && UNROLL <= HOLD_MOST; // a lane's part of X stays in registers
const uint HELD = HOLD ? UNROLL : 1;

uint groups() { return gl_NumWorkGroups.x * gl_NumWorkGroups.y; }

// turn_to makes the outputs of a turn the team's; there are STRETCH turns to what a workgroup makes in one place.
void turn_to(uint turn)
{
    uint place = group() + turn / STRETCH * groups(), colBlocks = COL_BLOCKS;
    col0 = 0;
    if (colBlocks > 1) {
        col0 = place % colBlocks * NUM_COLS;
        place /= colBlocks;
    }
    outs0 = place * OUTS;
    row0 = outs0 + turn % STRETCH * (TEAMS * SHARE) + lane / TEAM * SHARE;
}

uint turns()
{
    uint places = (rows + OUTS - 1) / OUTS * COL_BLOCKS;
    return group() < places ? ((places - 1 - group()) / groups() + 1) * STRETCH : 0;
}

float residual_of(uint r, uint c)
{
    bool mine = given(a.Residual) && stores(r, c) && row0 + r < rows && col0 + c < a.N;
    return mine ? Floats(advance(a.Residual, col0 + c, a.ResidualStride * 4)).f[team_row(r).row] : 0;
}

uint parts() { return a.K / 64; }

// has reports whether the lane has a u-th part; all but the last are always there.
bool has(uint u) { return u < UNROLL - 1 || u * TEAM + member < parts(); }

// weights of the r-th row of the team's turn.
Weights weights(uint r)
{
    Place p = team_row(r);
    return weights_at(advance(weights_of(p), p.row, a.K / 256 * BLOCK_BYTES));
}

X64 x_part(uint c, uint u)
{
    uint first = first_value();
    return load_x64(advance(advance(a.X, x_row(c), a.K), 1, first), advance(advance(a.S, x_row(c), a.K / 4), first / 32, 8), u);
}

void main()
{
    rows = PAIRS ? a.M0 : a.M0 + a.M1 + a.M2;
    lane = subgroup_lane();
    member = lane % TEAM;
    uint count = turns();
    if (count == 0)
        return;
    turn_to(0);

    Weights w[NUM_ROWS];
    Part raw[UNROLL][NUM_ROWS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = weights(r);
    [[unroll]] for (uint u = 0; u < UNROLL; u++)
        if (has(u))
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                raw[u][r] = load_part(w[r], u);
    [[unroll]] for (uint r = 0; r < SHARE; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            added[r][c] = residual_of(r, c);
    X64 held[HELD];
    if (HOLD)
        [[unroll]] for (uint u = 0; u < HELD; u++)
            if (has(u))
                held[u] = x_part(0, u);

    [[dont_unroll]] for (uint turn = 0; turn < count; turn++) {
        bool more = turn + 1 < count;
        Weights ahead[NUM_ROWS];
        float next[SHARE][NUM_COLS];
        turn_to(more ? turn + 1 : turn);
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            ahead[r] = weights(r);
        [[unroll]] for (uint r = 0; r < SHARE; r++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                next[r][c] = more ? residual_of(r, c) : 0;

        turn_to(turn);
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                acc[r][c] = 0;
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            if (has(u)) {
                [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
                    X64 x;
                    if (HOLD)
                        x = held[u % HELD];
                    else
                        x = x_part(c, u);
                    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                        acc[r][c] += dot_part(raw[u][r], w[r], x);
                }
                if (more)
                    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                        raw[u][r] = load_part(ahead[r], u);
            }
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            w[r] = ahead[r];

        partial0 = turn % 2 * (SUMS * MAX_SUBGROUPS);
        meet();
        [[unroll]] for (uint r = 0; r < SHARE; r++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
                if (stores(r, c))
                    finish(r, c);
                added[r][c] = next[r][c];
            }
        if (BYTES && turn % STRETCH == STRETCH - 1)
            bytes_out();
    }
}
