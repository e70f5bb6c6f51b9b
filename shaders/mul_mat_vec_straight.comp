#version 460
// mul_mat_vec, 8-bit, for a CPU whose driver makes every load of a lane a turn of a loop, unless all lanes load from one
// address that is made of nothing but push constants, by code that is in no branch and in no loop. So here are none of them, and a
// subgroup of 8 lanes loads what each lane needs for all, of which the compiler makes loads of whole vectors.
//
// A subgroup's share of a row is UNROLL groups of 256 values, and a team has as many subgroups as a row has shares.
#extension GL_GOOGLE_include_directive : require
#define LONGS
#define STRAIGHT
#include "team.glsl"
#include "int8.glsl"
#include "straight_types.glsl"

// given_back is x, below 2^bits, as a number made of push constants.
uint given_back(uint x, uint bits)
{
    uint y = 0;
    [[unroll]] for (uint i = 0; i < bits; i++)
        y |= (a.Steps[(x >> i) & 1] - a.Steps[0]) << i;
    return y;
}

uint64_t wide(uvec2 address) { return packUint2x32(address); }

// row_at is where row r of the team, whose first is `first`, begins.
uint64_t row_at(uint r, uint first)
{
    uint m = min(first + r % SHARE, rows - 1);
    uint64_t bytes = uint64_t(a.K / 256) * GROUP_BYTES;
    if (PAIRS)
        return wide(r < SHARE ? a.W0 : a.W1) + m * bytes;
    bool second = m >= a.M0, third = m >= a.M0 + a.M1;
    uvec2 w = mix(mix(a.W0, a.W1, bvec2(second)), a.W2, bvec2(third));
    m -= mix(mix(0, a.M0, second), a.M0 + a.M1, third);
    return wide(w) + m * bytes;
}

void main()
{
    bool inside = team_begin();
    uint cols = COL_BLOCKS, groups = a.K / 256;
    uint g = given_back(group(), STRAIGHT_BITS), sub = given_back(gl_SubgroupID, findMSB(LANES / 8));
    uint first = g / cols * OUTS + sub / (TEAM / 8) * SHARE, part = sub % (TEAM / 8);
    uint64_t w[NUM_ROWS], x[NUM_COLS], s[NUM_COLS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = row_at(r, first);
    [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
        uint64_t n = min(g % cols * NUM_COLS + c, a.N - 1);
        x[c] = wide(a.X) + n * a.K;
        s[c] = wide(a.S) + n * (a.K / 4);
    }
    [[unroll]] for (uint u = 0; u < UNROLL; u++) {
        uint i = part * UNROLL + u;
        bool there = i < groups;
        i = mix(u & 1, i, there); // an odd group stays one
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            XGroup xs = load_x(Words(x[c] + i * 256), Words(s[c] + i * 64));
            [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                acc[r][c] += mix(0.0, dot_group(w[r] + i * GROUP_BYTES, (u & 1) != 0, xs), there);
        }
    }
    if (inside)
        team_end();
}
