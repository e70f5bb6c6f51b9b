#version 460
// mul_mat_cm: Dst (N, M) = X (N, K) · Wᵀ + Residual, X and W as halves in tiles, summed in float32 by cooperative matrices.
//
// A workgroup makes BM × BN outputs, each subgroup WM × WN of them. While a step of BK columns is
// multiplied out of shared memory, the next is on its way into registers.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES; // a subgroup for each WM × WN of BM × BN
#define LANES_ID 0
#include "memory.glsl"
#include "tiles.glsl"

layout(constant_id = 1) const uint BM = DEFAULT_BM;       // rows of W
layout(constant_id = 2) const uint BN = DEFAULT_BN;       // rows of X
layout(constant_id = 3) const uint BK = DEFAULT_BK;
layout(constant_id = 4) const uint WM = DEFAULT_WM;
layout(constant_id = 5) const uint WN = DEFAULT_WN;
layout(constant_id = 6) const uint STAGES = DEFAULT_STAGES; // 2: a step is stored beside the one that others still multiply

layout(push_constant, std430) uniform Args {
    uvec2 W, X, Scales, Dst, Residual, Grids;
    uint M, K, N, DstStride, ResidualStride, pad0;
} a;

#include "out_cm.glsl"

const uint TM = 16, TN = 16, TK = 16; // of one cooperative matrix
const uint ACROSS = WM / TM, DOWN = WN / TN, SUBGROUPS = BM / WM * (BN / WN);
const uint STRIDE = BK / 8 + 1;        // vecs from row to row in shared memory: no two rows meet in a bank
const uint OUT_STRIDE = WM / 4 + 1;    // vecs, of 4 floats, of a row on its way out
const uint STEP_VECS = (BM + BN) * STRIDE, IN_VECS = STEP_VECS * STAGES, OUT_VECS = SUBGROUPS * TN * OUT_STRIDE;
const uint SHARED_VECS = IN_VECS > OUT_VECS ? IN_VECS : OUT_VECS;
const uint W_VECS = BM * BK / 8 / LANES, X_VECS = BN * BK / 8 / LANES; // that a lane brings in a step

shared uvec4 tile[SHARED_VECS]; // of each stage X (BN, STRIDE), W (BM, STRIDE); at last each subgroup's outputs

// from is where the i-th vec of a step's rows × BK is, counted from the tile that row0 is in; to is its place in shared memory.
// There are tiles up to the one that row `last` is in: those behind repeat it.
uint from(uint row0, uint rows, uint i, uint last)
{
    uint vec = i % (rows * 4), column = i / (rows * 4) * TILE_VECS + row0 % TILE_ROWS * 4;
    if (rows <= TILE_ROWS)
        return column + vec;
    uint below = min(vec / (TILE_ROWS * 4), last / TILE_ROWS - row0 / TILE_ROWS);
    return column + vec % (TILE_ROWS * 4) + below * (padded(a.K) / TILE_COLS * TILE_VECS);
}
uint to(uint rows, uint i) { return i % (rows * 4) / 4 * STRIDE + i / (rows * 4) * 4 + i % 4; }

Words4 tiles(uvec2 base, uint row0) { return Words4(advance(base, row0 / TILE_ROWS, padded(a.K) * TILE_ROWS * 2)); }

void main()
{
    uint across = (a.N + BN - 1) / BN;
    uint m0 = group() / across * BM, n0 = group() % across * BN;
    if (m0 >= a.M)
        return;
    uint lane = gl_LocalInvocationID.x;
    Words4 W = tiles(a.W, m0), X = tiles(a.X, n0);
    uint wm = gl_SubgroupID % (BM / WM) * WM, wn = gl_SubgroupID / (BM / WM) * WN;

    coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator> acc[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        acc[i] = coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator>(0.0);

    uvec4 rx[X_VECS], rw[W_VECS];
    [[unroll]] for (uint i = 0; i < X_VECS; i++)
        rx[i] = X.w[from(n0, BN, lane + i * LANES, a.N - 1)];
    [[unroll]] for (uint i = 0; i < W_VECS; i++)
        rw[i] = W.w[from(m0, BM, lane + i * LANES, a.M - 1)];
    uint steps = padded(a.K) / BK;
    [[dont_unroll]] for (uint step = 1; step <= steps; step++) {
        uint at = STAGES > 1 ? step % 2 * STEP_VECS : 0;
        if (STAGES == 1)
            barrier();
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            tile[at + to(BN, lane + i * LANES)] = rx[i];
        [[unroll]] for (uint i = 0; i < W_VECS; i++)
            tile[at + BN * STRIDE + to(BM, lane + i * LANES)] = rw[i];
        barrier();
        uint next = (step < steps ? step : 0) * (BK / TILE_COLS) * TILE_VECS; // the last brings what nobody reads
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            rx[i] = X.w[next + from(n0, BN, lane + i * LANES, a.N - 1)];
        [[unroll]] for (uint i = 0; i < W_VECS; i++)
            rw[i] = W.w[next + from(m0, BM, lane + i * LANES, a.M - 1)];
        [[unroll]] for (uint k = 0; k < BK / TK; k++) {
            coopmat<float16_t, gl_ScopeSubgroup, TN, TK, gl_MatrixUseA> x[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; i++)
                coopMatLoad(x[i], tile, at + (wn + i * TN) * STRIDE + k * TK / 8, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TM, gl_MatrixUseB> w;
                coopMatLoad(w, tile, at + (BN + wm + j * TM) * STRIDE + k * TK / 8, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; i++)
                    acc[j * DOWN + i] = coopMatMulAdd(x[i], w, acc[j * DOWN + i]);
            }
        }
    }
    barrier();

    // Out by 16 rows of a subgroup at a time, through its own part of the shared memory.
    uint mine = gl_SubgroupID * TN * OUT_STRIDE;
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(acc[j * DOWN + i], tile, mine + j * TM / 4, OUT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        for (uint v = gl_SubgroupInvocationID; v < TN * WM / 4; v += gl_SubgroupSize)
            put_four(n0 + wn + i * TN + v / (WM / 4), m0 + wm + v % (WM / 4) * 4, uintBitsToFloat(tile[mine + v / (WM / 4) * OUT_STRIDE + v % (WM / 4)]));
        subgroupBarrier();
    }
}
