#version 460
// mul_mat_heads: mul_mat for each of Heads heads with a matrix of its own, one behind another in W. A head's part of X and of Dst is XHead and
// DstHead values behind the one before. A workgroup makes NUM_ROWS × NUM_COLS outputs of a head, as one of mul_mat does, to the same bits.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(constant_id = 0) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 1) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 2) const uint WHOLE = DEFAULT_WHOLE; // 1: K % 8 == 0 and the strides of X % 4 == 0

layout(push_constant, std430) uniform Args {
    uvec2 W, X, Dst, Grids;
    uint M, K, N, XStride, DstStride, Heads, XHead, DstHead;
} a;

#include "weights.glsl"
#include "mul_mat_tile.glsl"

uint head; // of the workgroup

void store(uint row0, uint col0, uint o, float sum)
{
    uint m = row0 + o % NUM_ROWS, n = col0 + o / NUM_ROWS;
    if (m < a.M && n < a.N)
        Floats(advance(a.Dst, n, a.DstStride * 4)).f[head * a.DstHead + m] = sum;
}

#include "mul_mat_meet.glsl"

void main()
{
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS;
    uint rowBlocks = (a.M + NUM_ROWS - 1) / NUM_ROWS;
    uint block = group() % (rowBlocks * colBlocks);
    uint row0 = block / colBlocks * NUM_ROWS, col0 = block % colBlocks * NUM_COLS;
    head = group() / (rowBlocks * colBlocks);
    if (head >= a.Heads)
        return;
    uint lane = gl_LocalInvocationID.x;

    Row w[NUM_ROWS]; // rows and columns past the edge repeat the last one; store drops them
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        w[r] = weight_row(a.W, head * a.M + min(row0 + r, a.M - 1), a.K);
    uvec2 x = advance(advance(a.X, col0, a.XStride * 4), head, a.XHead * 4);
    uint lastCol = a.N - 1 - col0;

    precise float acc[NUM_ROWS][NUM_COLS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;

    for (uint k = lane * 8; k < a.K; k += LANES * 8) {
        float wv[NUM_ROWS][8];
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            load_w(w[r], k, wv[r]);
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            float xv[8];
            load_x(x, min(c, lastCol) * a.XStride, k, xv);
            [[unroll]] for (uint i = 0; i < 8; i++)
                [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                    acc[r][c] = fma(wv[r][i], xv[i], acc[r][c]);
        }
    }

    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            partial[slot(c * NUM_ROWS + r, lane)] = acc[r][c];
    barrier();
    if (OUTPUTS >= LANES / 2)
        reduce_alone(row0, col0);
    else
        reduce_together(row0, col0);
}
