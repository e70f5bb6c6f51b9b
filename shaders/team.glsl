// The frame of a mul_mat_vec in teams: who makes which outputs, how a team's lanes meet, what becomes of a sum.
// TEAM lanes make NUM_ROWS × NUM_COLS sums, each lane a part of every one.
//
// Up to three matrices of one type share X; their rows are counted on, those of W0 first. A sum gets its matrix's bias
// and the residual, where their addresses are not 0. With GLU W0 are gates, and W1, as large, is what they let through:
// a team has as many rows of each and stores silu(gate) * up, with GLU = 2 as bytes as well, like quantize_q8.

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "subgroup.glsl"

layout(constant_id = 1) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 2) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 3) const uint TEAM = DEFAULT_TEAM;
layout(constant_id = 4) const uint UNROLL = DEFAULT_UNROLL;
layout(constant_id = 5) const uint GLU = DEFAULT_GLU;

layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, W2, Bias0, Bias1, Bias2, Dst0, Dst1, Dst2, X, S, Residual;
    uint M0, M1, M2, K, N, XStride, DstStride, ResidualStride;
} a;

const uint SUMS = NUM_ROWS * NUM_COLS;
const uint TEAMS = LANES / TEAM;
const uint SHARE = GLU != 0 ? NUM_ROWS / 2 : NUM_ROWS; // rows of the output that a team makes
const uint MAX_SUBGROUPS = LANES / 4;
shared float partial[SUMS * MAX_SUBGROUPS]; // (SUMS, subgroups), where a team is more than one

const uint Q8_LANES = GLU == 2 ? LANES : 1;
#include "q8.glsl"
const uint OUTS = TEAMS * SHARE; // rows of the output that a workgroup makes
shared float outs[GLU == 2 ? OUTS * NUM_COLS : 1];

float acc[NUM_ROWS][NUM_COLS];
uint lane, member; // of the workgroup, of the team
uint row0, col0;   // of the team's outputs
uint rows;         // of the output

// team_begin is false for the workgroups of a grid that are too many.
bool team_begin()
{
    rows = GLU != 0 ? a.M0 : a.M0 + a.M1 + a.M2;
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS;
    uint rowBlocks = (rows + OUTS - 1) / OUTS;
    lane = subgroup_lane();
    member = lane % TEAM;
    row0 = group() / colBlocks * OUTS + lane / TEAM * SHARE;
    col0 = group() % colBlocks * NUM_COLS;
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;
    return group() < rowBlocks * colBlocks;
}

// Place is a row of one of the matrices.
struct Place {
    uint matrix, row;
};

// Rows and columns past the edge repeat the last one; finish drops them.
Place team_row(uint r)
{
    uint m = min(row0 + r % SHARE, rows - 1);
    if (GLU != 0)
        return Place(r / SHARE, m);
    if (m < a.M0)
        return Place(0, m);
    m -= a.M0;
    return m < a.M1 ? Place(1, m) : Place(2, m - a.M1);
}

uint team_col(uint c) { return min(col0 + c, a.N - 1); }

uvec2 pick(uint matrix, uvec2 zero, uvec2 one, uvec2 two) { return matrix == 0 ? zero : matrix == 1 ? one : two; }

uvec2 weights_of(Place p) { return pick(p.matrix, a.W0, a.W1, a.W2); }

bool given(uvec2 address) { return (address.x | address.y) != 0; }

float biased(float sum, Place p)
{
    uvec2 bias = pick(p.matrix, a.Bias0, a.Bias1, a.Bias2);
    return given(bias) ? sum + Floats(bias).f[p.row] : sum;
}

// meet adds the lanes' parts up.
void meet()
{
    uint width = min(TEAM, gl_SubgroupSize);
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = sum_within(acc[r][c], width);
    if (TEAM <= gl_SubgroupSize)
        return;
    if (gl_SubgroupInvocationID == 0)
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                partial[(r * NUM_COLS + c) * MAX_SUBGROUPS + gl_SubgroupID] = acc[r][c];
    barrier();
}

float total(uint r, uint c)
{
    if (TEAM <= gl_SubgroupSize)
        return acc[r][c];
    uint parts = TEAM / gl_SubgroupSize;
    float sum = 0;
    for (uint p = 0; p < parts; p++)
        sum += partial[(r * NUM_COLS + c) * MAX_SUBGROUPS + lane / TEAM * parts + p];
    return sum;
}

void finish(uint r, uint c)
{
    uint n = col0 + c;
    Place p = team_row(r);
    float y = biased(total(r, c), p);
    bool there = row0 + r < rows && n < a.N;
    if (GLU != 0) {
        y = y / (1.0 + exp(-max(y, -88.0))) * biased(total(r + SHARE, c), team_row(r + SHARE)); // as in swiglu
        if (GLU == 2)
            outs[c * OUTS + lane / TEAM * SHARE + r] = there ? y : 0;
    }
    if (!there)
        return;
    if (given(a.Residual))
        y += Floats(advance(a.Residual, n, a.ResidualStride * 4)).f[p.row];
    uvec2 dst = pick(p.matrix, a.Dst0, a.Dst1, a.Dst2);
    uint stride = p.matrix == 0 ? a.DstStride : p.matrix == 1 ? a.M1 : a.M2;
    Floats(advance(dst, n, stride * 4)).f[p.row] = y;
}

// bytes_out makes bytes of what the workgroup has in outs, 32 rows of a column to a block.
void bytes_out()
{
    barrier();
    const uint quads = OUTS / 4;
    uint first = group() / ((a.N + NUM_COLS - 1) / NUM_COLS) * OUTS;
    for (uint i = 0; i < quads * NUM_COLS; i += LANES) {
        uint at = i + gl_LocalInvocationID.x, n = col0 + at / quads, m = at % quads * 4;
        bool there = at < quads * NUM_COLS && n < a.N && first + m < rows;
        uint from = there ? at / quads * OUTS + m : 0;
        vec4 y = vec4(outs[from], outs[from + 1], outs[from + 2], outs[from + 3]);
        put_q8(y, there, a.Dst1, a.Dst2, (n * rows + first + m) / 32);
    }
}

void team_end()
{
    meet();
    [[unroll]] for (uint r = 0; r < SHARE; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            if (member == (r * NUM_COLS + c) % TEAM)
                finish(r, c);
    if (GLU == 2)
        bytes_out();
}
