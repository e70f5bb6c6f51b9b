// The body of mul_mat_vec and mul_mat: a workgroup makes NUM_ROWS × NUM_COLS outputs.
//
// Lane i takes the runs i, i + LANES, i + 2·LANES … of 8 values of K, each value one fma on its own
// accumulator; then the lanes meet in a fixed tree. So an output depends on K alone, to the bit,
// whatever the tile, and both kernels agree.

#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "weights.glsl"

layout(constant_id = 0) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 1) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 2) const uint WHOLE = DEFAULT_WHOLE; // 1: K % 8 == 0 and XStride % 4 == 0

layout(push_constant, std430) uniform Args {
    uvec2 W, X, Dst;
    uint M, K, N, XStride, DstStride, pad0;
} a;

const uint OUTPUTS = NUM_ROWS * NUM_COLS;
shared float partial[OUTPUTS * LANES]; // (OUTPUTS, LANES)

// slot turns each output's lanes by its number, so that neither writing nor reading meets a bank twice.
uint slot(uint o, uint lane) { return o * LANES + (lane + o) % LANES; }

void load_w(Row r, uint k, out float v[8])
{
#ifdef TAIL
    if (WHOLE == 0) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? value_at(r, k + i) : 0;
        return;
    }
#endif
    dequant8(r, k, v);
}

// load_x reads values k … k+7 of the column that starts at float `first` after x.
void load_x(uvec2 x, uint first, uint k, out float v[8])
{
    if (WHOLE == 0) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? Floats(x).f[first + k + i] : 0;
        return;
    }
    vec4 lo = Floats4(x).f[(first + k) / 4];
    vec4 hi = Floats4(x).f[(first + k) / 4 + 1];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        v[i] = lo[i];
        v[4 + i] = hi[i];
    }
}

void store(uint row0, uint col0, uint o, float sum)
{
    uint m = row0 + o % NUM_ROWS, n = col0 + o / NUM_ROWS;
    if (m < a.M && n < a.N)
        Floats(advance(a.Dst, n, a.DstStride * 4)).f[m] = sum;
}

// reduce_alone: lane o folds output o. One barrier; best when there are outputs for most lanes.
void reduce_alone(uint row0, uint col0)
{
    uint o = gl_LocalInvocationID.x;
    if (o >= OUTPUTS)
        return;
    precise float v[LANES / 2];
    [[unroll]] for (uint i = 0; i < LANES / 2; i++)
        v[i] = partial[slot(o, i)] + partial[slot(o, i + LANES / 2)];
    [[unroll]] for (uint s = LANES / 4; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++)
            v[i] = v[i] + v[i + s];
    store(row0, col0, o, v[0]);
}

// reduce_together: all lanes fold all outputs, the same tree.
void reduce_together(uint row0, uint col0)
{
    uint lane = gl_LocalInvocationID.x;
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        for (uint j = lane; j < OUTPUTS * s; j += LANES) {
            uint o = j / s, i = j % s;
            precise float t = partial[slot(o, i)] + partial[slot(o, i + s)];
            partial[slot(o, i)] = t;
        }
        barrier();
    }
    if (lane < OUTPUTS)
        store(row0, col0, lane, partial[slot(lane, 0)]);
}

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
