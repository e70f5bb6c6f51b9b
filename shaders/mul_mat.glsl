// The body of mul_mat_vec and mul_mat: a workgroup makes NUM_ROWS × NUM_COLS outputs.
//
// Lane i takes the runs i, i + LANES, i + 2·LANES … of 8 values of K, each value one fma on its own
// accumulator; then the lanes meet in a fixed tree. So an output depends on K alone, to the bit,
// whatever the tile, and both kernels agree.

#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(constant_id = 0) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 1) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 2) const uint WHOLE = DEFAULT_WHOLE; // 1: K % 8 == 0 and XStride % 4 == 0

layout(push_constant, std430) uniform Args {
    uvec2 W, X, Dst, Grids;
    uint M, K, N, XStride, DstStride, pad0;
} a;

#include "weights.glsl"
#include "mul_mat_tile.glsl"

void store(uint row0, uint col0, uint o, float sum)
{
    uint m = row0 + o % NUM_ROWS, n = col0 + o / NUM_ROWS;
    if (m < a.M && n < a.N)
        Floats(advance(a.Dst, n, a.DstStride * 4)).f[m] = sum;
}

#include "mul_mat_meet.glsl"

void main()
{
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS;
    uint rowBlocks = (a.M + NUM_ROWS - 1) / NUM_ROWS;
    uint row0 = group() / colBlocks * NUM_ROWS, col0 = group() % colBlocks * NUM_COLS;
    if (group() >= rowBlocks * colBlocks)
        return;
    uint lane = gl_LocalInvocationID.x;

    Row w[NUM_ROWS]; // rows and columns past the edge repeat the last one; store drops them
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = weight_row(a.W, min(row0 + r, a.M - 1), a.K);
    uvec2 x = advance(a.X, col0, a.XStride * 4);
    uint lastCol = a.N - 1 - col0;

#define LOAD_X(c, k, xv) load_x(x, min(c, lastCol) * a.XStride, k, xv)
#include "mul_mat_sums.glsl"
    barrier();
    if (OUTPUTS >= LANES / 2)
        reduce_alone(row0, col0);
    else
        reduce_together(row0, col0);
}
