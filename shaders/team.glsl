// The frame of a mul_mat_vec in teams: who makes which outputs, how a team's lanes meet, what becomes of a sum.
// TEAM lanes make NUM_ROWS × NUM_COLS sums, each lane a part of every one.
//
// Up to three matrices of one type share X; their rows are counted on, those of W0 first. A sum gets its matrix's bias
// and the residual, where their addresses are not 0. With GLU W0 are gates, and W1, as large, is what they let through:
// a team has as many rows of each and stores silu(gate) * up, with GLU = 2 as bytes as well, like quantize_q8.
//
// RMSNorm needs no dispatch: the bytes of x * w, w the norm's weights, and their scales do not depend on the mean of squares,
// which is one factor of a row. With GLU = 3 the rows of Dst0, times W1, are stored as bytes too, Q at Dst1 and S at Dst2, behind S
// for each block of 32 its sum of squares and 32 eps, of which M1 has the bits. The last workgroup to end of those that make a
// block does it, by counters at Bias1 that are 0 before and after. A kernel with NORMED = 1 takes such bytes, and multiplies its
// sums by 1 / sqrt(mean).
//
// With EXPERTS a column is a pair of a row and an expert: X's row is pair / Used, and W0 and W1 are tables of where the experts'
// matrices lie. The columns of a workgroup are of one expert: a pair, or where there are several those of one of the Tiles that
// group_experts makes; where an address is 0 they are left out. There are neither siblings, biases nor a residual.
//
// With EXPERT_SUM a sum goes over all experts of a row, too: there is one matrix, in Table, and no bias.

#include "team_shape.glsl"
layout(constant_id = 5) const uint GLU = DEFAULT_GLU;
layout(constant_id = 6) const uint NORMED = DEFAULT_NORMED;
const bool PAIRS = GLU == 1 || GLU == 2, BYTES = GLU == 2, NORM = GLU == 3;

#ifdef EXPERTS
layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, Dst0, Dst1, Dst2, X, S, IDs, Pairs, Tiles;
    uint M0, K, Blocks, Used, DstStride, First, Last, pad0;
} a;

uint begin, count; // the columns: where they begin in Pairs, how many
uvec2 experts[2];  // where the matrices of their expert are

uint pair_of(uint c) { return NUM_COLS == 1 ? begin : Words(a.Pairs).w[begin + min(c, count - 1)]; }

#define COL_BLOCKS a.Blocks
#define OUT_COL(c) pair_of(c)
#define HAS_COL(c, n) ((c) < count)
#elif defined(EXPERT_SUM)
layout(push_constant, std430) uniform Args {
    uvec2 Table, X, S, IDs, Weights, Dst, Residual;
    uint M, K, N, Used, DstStride, ResidualStride;
} a;
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
#define PLAIN
#endif

#ifndef EXPERTS
#define COL_BLOCKS ((a.N + NUM_COLS - 1) / NUM_COLS)
#define OUT_COL(c) (col0 + (c))
#define HAS_COL(c, n) ((n) < a.N)
#endif

bool given(uvec2 address) { return (address.x | address.y) != 0; }

const uint SUMS = NUM_ROWS * NUM_COLS;
const uint TEAMS = LANES / TEAM;
const uint SHARE = PAIRS ? NUM_ROWS / 2 : NUM_ROWS; // rows of the output that a team makes
const uint MAX_SUBGROUPS = LANES / 4;
#ifdef PERSISTENT
const uint PARTIALS = 2; // while one is read, the next is written
#else
const uint PARTIALS = 1;
#endif
shared float partial[PARTIALS * SUMS * MAX_SUBGROUPS]; // (SUMS, subgroups), where a team is more than one

// OUTS are the rows of the output that a workgroup makes, STRETCH after one another.
#ifdef PERSISTENT
const uint STRETCH = BYTES ? (TEAMS * SHARE < 32 ? 32 / (TEAMS * SHARE) : 1) : 1; // no &&: glslc loses it
#else
const uint STRETCH = 1;
#endif
const uint OUTS = TEAMS * SHARE * STRETCH;
const uint Q8_LANES = BYTES || NORM ? LANES : 1;
#include "q8.glsl"
shared float outs[BYTES ? OUTS * NUM_COLS : 1];
shared uint ended; // workgroups before this one that make the same block

// What one workgroup leaves another may read in the same dispatch.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Left { float f[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) coherent readonly buffer Left4 { vec4 f[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counts { uint n[]; };

float acc[NUM_ROWS][NUM_COLS];
#ifndef EXPERTS
float added[SHARE][NUM_COLS]; // the residual of the outputs that a lane stores, asked for before the sums are made
#endif
float squares[NUM_COLS]; // a lane's part of them, then what a sum is multiplied by
uint lane, member; // of the workgroup, of the team
uint row0, col0;   // of the team's outputs
uint outs0;        // of the workgroup's
uint partial0;     // where its partial sums begin
uint rows;         // of the output

// squares_behind are those of rows of so many values in all, whose scales are at s.
uvec2 squares_behind(uvec2 s, uint values) { return advance(s, (values / 4 + 15) & ~15u, 1); }

// Place is a row of one of the matrices.
struct Place {
    uint matrix, row;
};

// Rows and columns past the edge repeat the last one; finish drops them.
Place team_row(uint r)
{
    uint m = min(row0 + r % SHARE, rows - 1);
#if defined(EXPERTS) || defined(EXPERT_SUM)
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
#if defined(EXPERT_SUM)
    rows = a.M;
#elif defined(EXPERTS)
    rows = a.M0;
#else
    rows = PAIRS || NORM ? a.M0 : a.M0 + a.M1 + a.M2;
#endif
    uint colBlocks = COL_BLOCKS;
    uint rowBlocks = (rows + OUTS - 1) / OUTS;
    lane = subgroup_lane();
    member = lane % TEAM;
    outs0 = group() / colBlocks * OUTS;
    row0 = outs0 + lane / TEAM * SHARE;
    col0 = group() % colBlocks * NUM_COLS;
    partial0 = 0;
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
#ifdef PLAIN
    if (NORMED != 0)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            Floats4 of = Floats4(advance(squares_behind(a.S, a.N * a.K), min(col0 + c, a.N - 1), a.K / 8));
            squares[c] = 0;
            for (uint i = gl_SubgroupInvocationID; i < a.K / 128; i += gl_SubgroupSize)
                squares[c] += dot(of.f[i], vec4(1));
        }
#endif
    return group() < rowBlocks * colBlocks;
#endif
}

#ifdef EXPERTS
uint x_row(uint c) { return pair_of(c) / a.Used; }

uvec2 weights_of(Place p) { return p.matrix == 0 ? experts[0] : experts[1]; }

float biased(float sum, Place p) { return sum; }
#elif defined(EXPERT_SUM)
float biased(float sum, Place p) { return sum; }
#else
uint team_col(uint c) { return min(col0 + c, a.N - 1); }
#define x_row team_col

uvec2 pick(uint matrix, uvec2 zero, uvec2 one, uvec2 two) { return matrix == 0 ? zero : matrix == 1 ? one : two; }

uvec2 weights_of(Place p) { return pick(p.matrix, a.W0, a.W1, a.W2); }

float biased(float sum, Place p)
{
    uvec2 bias = pick(p.matrix, a.Bias0, a.Bias1, a.Bias2);
    return given(bias) ? sum + Floats(bias).f[p.row] : sum;
}
#endif

// meet adds the lanes' parts up.
void meet()
{
    uint width = min(TEAM, gl_SubgroupSize);
#ifdef PLAIN
    if (NORMED != 0)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            squares[c] = 1.0 / sqrt(sum_within(squares[c], gl_SubgroupSize) / float(a.K));
#endif
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = sum_within(acc[r][c], width);
    if (TEAM <= gl_SubgroupSize)
        return;
    if (gl_SubgroupInvocationID == 0)
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
                partial[partial0 + (r * NUM_COLS + c) * MAX_SUBGROUPS + gl_SubgroupID] = acc[r][c];
    barrier();
}

float total(uint r, uint c)
{
    if (TEAM <= gl_SubgroupSize)
        return acc[r][c];
    uint parts = TEAM / gl_SubgroupSize;
    float sum = 0;
    for (uint p = 0; p < parts; p++)
        sum += partial[partial0 + (r * NUM_COLS + c) * MAX_SUBGROUPS + lane / TEAM * parts + p];
    return sum;
}

float scaled(uint r, uint c) { return NORMED != 0 ? total(r, c) * squares[c] : total(r, c); }

void finish(uint r, uint c)
{
    uint n = OUT_COL(c);
    Place p = team_row(r);
    float y = biased(scaled(r, c), p);
    bool there = row0 + r < rows && HAS_COL(c, n);
    if (PAIRS) {
        y = y / (1.0 + exp(-max(y, -88.0))) * biased(scaled(r + SHARE, c), team_row(r + SHARE)); // as in swiglu
        if (BYTES)
            outs[c * OUTS + row0 + r - outs0] = there ? y : 0;
    }
    if (!there)
        return;
#ifdef EXPERTS
    Floats(advance(a.Dst0, n, a.DstStride * 4)).f[p.row] = y;
#else
    y += added[r][c];
#ifdef EXPERT_SUM
    Floats(advance(a.Dst, n, a.DstStride * 4)).f[p.row] = y;
#else
    uvec2 dst = pick(p.matrix, a.Dst0, a.Dst1, a.Dst2);
    uint stride = p.matrix == 0 ? a.DstStride : p.matrix == 1 ? a.M1 : a.M2;
    if (NORM)
        Left(advance(dst, n, stride * 4)).f[p.row] = y;
    else
        Floats(advance(dst, n, stride * 4)).f[p.row] = y;
#endif
#endif
}

// bytes_out makes bytes of what the workgroup has in outs, 32 rows of a column to a block.
#ifndef EXPERT_SUM
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
#endif

#ifdef PLAIN
// all_made is true for the last of the workgroups that make a block, once all of it is there.
bool all_made(uint counter)
{
    const uint workgroups = OUTS < 32 ? 32 / OUTS : 1;
    memoryBarrierBuffer();
    barrier();
    if (workgroups > 1) {
        if (gl_LocalInvocationID.x == 0) {
            ended = atomicAdd(Counts(a.Bias1).n[counter], 1);
            if (ended == workgroups - 1)
                Counts(a.Bias1).n[counter] = 0; // for the next dispatch
        }
        barrier();
        memoryBarrierBuffer();
        return ended == workgroups - 1;
    }
    return true;
}

// norm_out makes bytes of the blocks that the workgroup has made the last of.
void norm_out()
{
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS, first = group() / colBlocks * OUTS / 32 * 32;
    if (!all_made(first / 32 * colBlocks + group() % colBlocks))
        return;
    const uint quads = (OUTS < 32 ? 32 : OUTS) / 4;
    uint me = gl_LocalInvocationID.x;
    for (uint i = 0; i < quads * NUM_COLS; i += LANES) {
        uint at = i + me, n = col0 + at / quads, m = first + at % quads * 4;
        bool there = at < quads * NUM_COLS && n < a.N && m < rows;
        vec4 x = vec4(0), w = vec4(0);
        if (there) {
            x = Left4(advance(a.Dst0, n, a.DstStride * 4)).f[m / 4];
            w = Floats4(a.W1).f[m / 4];
        }
        uint block = (n * rows + m) / 32;
        put_q8(x * w, there, a.Dst1, a.Dst2, block);
        barrier();
        q8_largest[me] = floatBitsToUint(dot(x, x)); // its memory is free
        barrier();
        if (there && me % 8 == 0) {
            float sum = 32 * uintBitsToFloat(a.M1);
            [[unroll]] for (uint l = 0; l < 8; l++)
                sum += uintBitsToFloat(q8_largest[me + l]);
            Floats(squares_behind(a.Dst2, a.N * rows)).f[block] = sum;
        }
        barrier(); // the sums have been read
    }
}
#endif

void team_end()
{
    meet();
    [[unroll]] for (uint r = 0; r < SHARE; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            if (stores(r, c))
                finish(r, c);
#ifndef EXPERT_SUM
    if (BYTES)
        bytes_out();
#endif
#ifdef PLAIN
    if (NORM)
        norm_out();
#endif
}
