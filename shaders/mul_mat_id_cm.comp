#version 460
// mul_mat_id_cm: Dst (pairs, M) = X · Wᵀ of the expert of each pair, X as halves in tiles, W in blocks, summed in float32 by
// cooperative matrices. With GLU it is silu(X · W0ᵀ) * (X · W1ᵀ).
//
// A workgroup makes BM rows of an expert's output, with GLU half as many, for up to BN of its pairs, one of the Tiles of group_experts.
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
    uvec2 W0, W1, X, Scales, Dst, Pairs, Tiles, Grids;
    uint M, K, Blocks, Used, DstStride, First, Last, pad0;
} a;

#include "blocks_cm.glsl"
#include "store_cm.glsl"

uvec4 t; // of Tiles: expert, first of Pairs, how many

bool given(uvec2 address) { return (address.x | address.y) != 0; }

uint pair_of(uint n) { return Words(a.Pairs).w[t.y + min(n, t.z - 1)]; }

void put(uint n, uint quad, uint at)
{
    uint m = m0 + (GLU != 0 ? wm / 2 : wm) + quad * 4;
    if (n >= t.z || m >= a.M)
        return;
    uint pair = pair_of(n);
    float scale = Floats(a.Scales).f[pair / a.Used];
    store_four(pair, m, GLU != 0 ? let_through(quad, at, scale) : uintBitsToFloat(tile[at + quad]) * scale);
}

void main()
{
    m0 = group() / a.Blocks * OUTS;
    if (m0 >= a.M)
        return;
    t = Words4(a.Tiles).w[group() % a.Blocks];
    if (t.z == 0 || t.x < a.First || t.x >= a.Last)
        return;
    uvec2 w0 = Words2(a.W0).w[t.x], w1 = w0;
    if (GLU != 0)
        w1 = Words2(a.W1).w[t.x];
    if (!given(w0) || !given(w1))
        return;
    init_types();
    wm = gl_SubgroupID % (BM / WM) * WM;
    wn = gl_SubgroupID / (BM / WM) * WN;

    // Rows and pairs past the edge repeat the last one.
    Row w[W_CHUNKS];
    [[unroll]] for (uint i = 0; i < W_CHUNKS; i++) {
        uint r = w_member(i);
        w[i] = w_row(GLU != 0 && r / 16 % 2 != 0 ? w1 : w0, min(m0 + out_row(r), a.M - 1));
    }
    uvec2 x[X_VECS];
    [[unroll]] for (uint i = 0; i < X_VECS; i++) {
        uint row = pair_of(x_member(i)) / a.Used;
        x[i] = advance(advance(a.X, row / TILE_ROWS, padded(a.K) * TILE_ROWS * 2), row % TILE_ROWS, TILE_COLS * 2);
    }

#define X_VEC(i, k) Words4(x[i]).w[vec_of(k)]
#include "blocks_cm_sums.glsl"
}
