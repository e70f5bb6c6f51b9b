// The body of mul_mat_vec_id and mul_mat_id: like mul_mat.glsl, but each column of X, a pair of a row and an expert, has
// weights of its own. Table says where an expert's matrix lies, so that it may lie anywhere; 0: nowhere, its pairs are left out.
//
// An output is summed up as in mul_mat.glsl: to the same bits, whatever pairs share a tile.

#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(constant_id = 0) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 1) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 2) const uint WHOLE = DEFAULT_WHOLE; // 1: K % 8 == 0 and XStride % 4 == 0

layout(push_constant, std430) uniform Args {
    uvec2 Table, X, Dst, IDs, Pairs, Tiles, Grids;
    uint M, K, Count, Used, XStride, DstStride, First, Last, Blocks, pad0;
} a;

#include "weights.glsl"
#include "mul_mat_tile.glsl"

// columns are the pairs of one expert that a workgroup takes.
struct Columns {
    uint expert, first, count;
};

Columns columns(uint block);   // the block'th; count 0: nothing to do
uint pair_of(uint at);         // the pair at a place in the order of the columns

void store(uint row0, uint col0, uint o, float sum)
{
    uint m = row0 + o % NUM_ROWS, c = o / NUM_ROWS;
    if (m < a.M && c < columns(col0).count)
        Floats(advance(a.Dst, pair_of(columns(col0).first + c), a.DstStride * 4)).f[m] = sum;
}

#include "mul_mat_meet.glsl"

void main()
{
    uint rowBlocks = (a.M + NUM_ROWS - 1) / NUM_ROWS;
    uint row0 = group() / a.Blocks * NUM_ROWS, block = group() % a.Blocks;
    if (group() >= rowBlocks * a.Blocks)
        return;
    Columns cols = columns(block);
    if (cols.count == 0 || cols.expert < a.First || cols.expert >= a.Last)
        return;
    uint lane = gl_LocalInvocationID.x;

    uvec2 base = Words2(a.Table).w[cols.expert];
    if ((base.x | base.y) == 0)
        return;
    Row w[NUM_ROWS]; // rows and columns past the edge repeat the last one; store drops them
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = weight_row(base, min(row0 + r, a.M - 1), a.K);
    uvec2 x[NUM_COLS];
    [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
        x[c] = advance(a.X, pair_of(cols.first + min(c, cols.count - 1)) / a.Used, a.XStride * 4);

#define LOAD_X(c, k, xv) load_x(x[c], 0, k, xv)
#include "mul_mat_sums.glsl"
    barrier();
    if (OUTPUTS >= LANES / 2)
        reduce_alone(row0, block);
    else
        reduce_together(row0, block);
}
