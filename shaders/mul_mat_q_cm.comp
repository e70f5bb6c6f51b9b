#version 460
// mul_mat_q_cm: Dst (N, M) = X (N, K) · Wᵀ + Residual, X as halves in tiles, W in blocks: mul_mat_cm without a dequant_f16 before it.
// With GLU it is silu(X · Wᵀ) * (X · Upᵀ), and Up stands where else Residual does.
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

layout(push_constant, std430) uniform Args {
    uvec2 W, X, Scales, Dst, Residual, Grids;
    uint M, K, N, DstStride, ResidualStride, pad0;
} a;

#include "blocks_cm.glsl"
#include "out_cm.glsl"

const uint X_TILES = BN > TILE_ROWS ? BN / TILE_ROWS : 1; // that a workgroup reads side by side
const uint APART = LANES / PARTS;                        // rows of X from one vec of a lane to its next

void put(uint n, uint quad, uint at)
{
    n += n0;
    uint m = m0 + (GLU != 0 ? wm / 2 : wm) + quad * 4;
    if (GLU == 0)
        put_four(n, m, uintBitsToFloat(tile[at + quad]));
    else if (n < a.N && m < a.M)
        store_four(n, m, let_through(quad, at, Floats(a.Scales).f[n]));
}

void main()
{
    uint across = (a.N + BN - 1) / BN;
    m0 = group() / across * OUTS;
    n0 = group() % across * BN;
    if (m0 >= a.M)
        return;
    init_types();
    wm = gl_SubgroupID % (BM / WM) * WM;
    wn = gl_SubgroupID / (BM / WM) * WN;

    Row w[W_CHUNKS]; // rows past the edge repeat the last one
    [[unroll]] for (uint i = 0; i < W_CHUNKS; i++) {
        uint r = w_member(i);
        w[i] = w_row(GLU != 0 && r / 16 % 2 != 0 ? a.Residual : a.W, min(m0 + out_row(r), a.M - 1));
    }
    uvec2 x[X_TILES]; // a tile has all its rows; tiles past the edge repeat the last one
    [[unroll]] for (uint i = 0; i < X_TILES; i++)
        x[i] = advance(advance(a.X, min(n0 / TILE_ROWS + i, (a.N - 1) / TILE_ROWS), padded(a.K) * TILE_ROWS * 2), n0 % TILE_ROWS + x_member(0), TILE_COLS * 2);

#define X_VEC(i, k) Words4(x[(i) * APART / TILE_ROWS]).w[vec_of(k) + (i) * APART % TILE_ROWS * (TILE_COLS / 8)]
#include "blocks_cm_sums.glsl"
}
