// The frame of a mul_mat_vec in teams: who makes which outputs, how a team's lanes meet, what becomes of a sum.
// TEAM lanes make NUM_ROWS × NUM_COLS sums, each lane a part of every one.
//
// Up to three matrices of one type share X; their rows are counted on, those of W0 first. A sum gets its matrix's bias
// and the residual, where their addresses are not 0. With GLU W0 are gates, and W1, as large, is what they let through:
// a team has as many rows of each and stores silu(gate) * up, with GLU = 2 as bytes as well, like quantize_q8.
//
// With EXPERTS a column is a pair of a row and an expert: X's row is pair / Used, and W0 and W1 are tables of where the experts'
// matrices lie. The columns of a workgroup are of one expert: a pair, or where there are several those of one of the Tiles that
// group_experts makes; where an address is 0 they are left out. There are neither siblings, biases nor a residual.

#include "team_shape.glsl"
layout(constant_id = 5) const uint GLU = DEFAULT_GLU;
const bool PAIRS = GLU != 0, BYTES = GLU == 2;

#ifdef EXPERTS
layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, Dst0, Dst1, Dst2, X, S, IDs, Pairs, Tiles, Grids;
    uint M0, K, Blocks, Used, DstStride, First, Last, pad0;
} a;

uint begin, count; // the columns: where they begin in Pairs, how many
uvec2 experts[2];  // where the matrices of their expert are

uint pair_of(uint c) { return NUM_COLS == 1 ? begin : Words(a.Pairs).w[begin + min(c, count - 1)]; }

#define COL_BLOCKS a.Blocks
#define OUT_COL(c) pair_of(c)
#define HAS_COL(c, n) ((c) < count)
#else
layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, W2, Bias0, Bias1, Bias2, Dst0, Dst1, Dst2, X, S, Residual;
#ifdef STRAIGHT
    uint M0, M1, M2, K, Steps[2], DstStride, ResidualStride; // Steps: N, N + 1
#define N Steps[0]
#else
    uint M0, M1, M2, K, N, XStride, DstStride, ResidualStride;
#endif
} a;
#endif

#ifndef EXPERTS
#ifndef STRAIGHT
// grids_near is where the grids are: XStride times 16 bytes behind S.
uvec2 grids_near()
{
    uint carry, lo = uaddCarry(a.S.x, a.XStride << 4, carry);
    return uvec2(lo, a.S.y + uint(int(a.XStride) >> 28) + carry);
}

#define GRIDS grids_near()
#endif
#define COL_BLOCKS ((a.N + NUM_COLS - 1) / NUM_COLS)
#define OUT_COL(c) (col0 + (c))
#define HAS_COL(c, n) ((n) < a.N)
#endif

bool given(uvec2 address) { return (address.x | address.y) != 0; }

const uint SUMS = NUM_ROWS * NUM_COLS;
const uint TEAMS = LANES / TEAM;
const uint SHARE = PAIRS ? NUM_ROWS / 2 : NUM_ROWS; // rows of the output that a team makes
const uint MAX_SUBGROUPS = LANES / 4;

// OUTS are the rows of the output that a workgroup makes in one place. With PERSISTENT it makes them in STRETCH turns, as many as bytes need for a block.
// partial (SUMS, subgroups) is where a team is more than one subgroup.
#ifdef PERSISTENT
const uint STRETCH = BYTES ? (TEAMS * SHARE < 32 ? 32 / (TEAMS * SHARE) : 1) : 1; // no &&: glslc loses it
const uint OUTS = TEAMS * SHARE * STRETCH;
shared float partial[2 * SUMS * MAX_SUBGROUPS]; // while one half is read, the next is written
uint partial0;                                  // where the turn's half begins
#define PARTIAL(i) partial[partial0 + (i)]
#else
shared float partial[SUMS * MAX_SUBGROUPS];
const uint OUTS = TEAMS * SHARE;
#define PARTIAL(i) partial[i]
#endif
const uint Q8_LANES = BYTES ? LANES : 1;
#include "q8.glsl"
shared float outs[BYTES ? OUTS * NUM_COLS : 1];

float acc[NUM_ROWS][NUM_COLS];
#ifndef EXPERTS
float added[SHARE][NUM_COLS]; // the residual of the outputs that a lane stores, asked for before the sums are made
#endif
uint lane, member; // of the workgroup, of the team
uint row0, col0;   // of the team's outputs
uint outs0;        // of the workgroup's
uint rows;         // of the output

// Place is a row of one of the matrices.
struct Place {
    uint matrix, row;
};

// Rows and columns past the edge repeat the last one; finish drops them.
Place team_row(uint r)
{
    uint m = min(row0 + r % SHARE, rows - 1);
#ifdef EXPERTS
    return Place(r / SHARE, m);
#else
    if (PAIRS)
        return Place(r / SHARE, m);
    if (m < a.M0)
        return Place(0, m);
    m -= a.M0;
    return m < a.M1 ? Place(1, m) : Place(2, m - a.M1);
#endif
}

// stores reports whether the lane is the one of its team that stores an output.
bool stores(uint r, uint c) { return member == (r * NUM_COLS + c) % TEAM; }

// team_begin is false for the workgroups of a grid that are too many.
bool team_begin()
{
#ifdef EXPERTS
    rows = a.M0;
#else
    rows = PAIRS ? a.M0 : a.M0 + a.M1 + a.M2;
#endif
    uint colBlocks = COL_BLOCKS;
    uint rowBlocks = (rows + OUTS - 1) / OUTS;
    lane = subgroup_lane();
    member = lane % TEAM;
    outs0 = group() / colBlocks * OUTS;
    row0 = outs0 + lane / TEAM * SHARE;
    col0 = group() % colBlocks * NUM_COLS;
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;
#ifndef EXPERTS
    [[unroll]] for (uint r = 0; r < SHARE; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            bool mine = given(a.Residual) && stores(r, c) && row0 + r < rows && col0 + c < a.N;
            added[r][c] = mine ? Floats(advance(a.Residual, col0 + c, a.ResidualStride * 4)).f[team_row(r).row] : 0;
        }
#endif
#ifdef EXPERTS
    if (group() >= rowBlocks * colBlocks)
        return false;
    uint block = group() % colBlocks;
    uvec4 t = NUM_COLS == 1 ? uvec4(Words(a.IDs).w[block], block, 1, 0) : Words4(a.Tiles).w[block];
    begin = t.y;
    count = t.z;
    if (count == 0 || t.x < a.First || t.x >= a.Last)
        return false;
    experts[0] = Words2(a.W0).w[t.x];
    experts[1] = PAIRS ? Words2(a.W1).w[t.x] : experts[0];
    return given(experts[0]) && given(experts[1]);
#else
    return group() < rowBlocks * colBlocks;
#endif
}

#ifdef EXPERTS
uint x_row(uint c) { return pair_of(c) / a.Used; }

uvec2 weights_of(Place p) { return p.matrix == 0 ? experts[0] : experts[1]; }

float biased(float sum, Place p) { return sum; }
#else
uint team_col(uint c) { return min(col0 + c, a.N - 1); }
#define x_row team_col

uvec2 pick(uint matrix, uvec2 zero, uvec2 one, uvec2 two) { return matrix == 0 ? zero : matrix == 1 ? one : two; }

uvec2 weights_of(Place p) { return pick(p.matrix, a.W0, a.W1, a.W2); }

float biased(float sum, Place p)
{
    uvec2 bias = pick(p.matrix, a.Bias0, a.Bias1, a.Bias2);
#ifdef TYPE_NVFP4
    if ((bias.x & 1) != 0) { // a scale, see MulMatTeamArgs
        precise float y = sum * Floats(uvec2(bias.x & ~1, bias.y)).f[0];
        return y;
    }
#endif
    return given(bias) ? sum + Floats(bias).f[p.row] : sum;
}
#endif

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
                PARTIAL((r * NUM_COLS + c) * MAX_SUBGROUPS + gl_SubgroupID) = acc[r][c];
    barrier();
}

float total(uint r, uint c)
{
    if (TEAM <= gl_SubgroupSize)
        return acc[r][c];
    uint parts = TEAM / gl_SubgroupSize;
    float sum = 0;
    for (uint p = 0; p < parts; p++)
        sum += PARTIAL((r * NUM_COLS + c) * MAX_SUBGROUPS + lane / TEAM * parts + p);
    return sum;
}

void finish(uint r, uint c)
{
    uint n = OUT_COL(c);
    Place p = team_row(r);
    float y = biased(total(r, c), p);
    bool there = row0 + r < rows && HAS_COL(c, n);
    if (PAIRS) {
        y = y / (1.0 + exp(-max(y, -88.0))) * biased(total(r + SHARE, c), team_row(r + SHARE)); // as in swiglu
        if (BYTES)
            outs[c * OUTS + row0 + r - outs0] = there ? y : 0;
    }
    if (!there)
        return;
#ifdef EXPERTS
    Floats(advance(a.Dst0, n, a.DstStride * 4)).f[p.row] = y;
#else
    y += added[r][c];
    uvec2 dst = pick(p.matrix, a.Dst0, a.Dst1, a.Dst2);
    uint stride = p.matrix == 0 ? a.DstStride : p.matrix == 1 ? a.M1 : a.M2;
    Floats(advance(dst, n, stride * 4)).f[p.row] = y;
#endif
}

// bytes_out makes bytes of what the workgroup has in outs, 32 rows of a column to a block.
void bytes_out()
{
    barrier();
    const uint quads = OUTS / 4;
    for (uint i = 0; i < quads * NUM_COLS; i += LANES) {
        uint at = i + gl_LocalInvocationID.x, n = OUT_COL(at / quads), m = at % quads * 4;
        bool there = at < quads * NUM_COLS && HAS_COL(at / quads, n) && outs0 + m < rows;
        uint from = there ? at / quads * OUTS + m : 0;
        vec4 y = vec4(outs[from], outs[from + 1], outs[from + 2], outs[from + 3]);
        put_q8(y, there, a.Dst1, a.Dst2, (n * rows + outs0 + m) / 32);
    }
}

void team_end()
{
    meet();
    [[unroll]] for (uint r = 0; r < SHARE; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            if (stores(r, c))
                finish(r, c);
    if (BYTES)
        bytes_out();
}
