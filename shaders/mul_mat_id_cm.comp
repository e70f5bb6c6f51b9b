#version 460
// mul_mat_id_cm: Dst (pairs, M) = X · Wᵀ of the expert of each pair, X as halves in tiles, W in blocks, summed in float32 by
// cooperative matrices. With GLU it is silu(X · W0ᵀ) * (X · W1ᵀ).
//
// A workgroup makes BM rows of an expert's output for up to BN of its pairs, one of the Tiles of group_experts. W is read
// once and decoded on its way into shared memory: while a step of 64 columns is multiplied, the bytes of the next are under way.
// The columns come in the order in which the type's chunks hold them; X's do too.
//
// With GLU the BM rows are 16 of the gates, 16 of what they let through, and so on.
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

layout(constant_id = 1) const uint BM = DEFAULT_BM; // rows of W
layout(constant_id = 2) const uint BN = DEFAULT_BN; // pairs
layout(constant_id = 3) const uint WM = DEFAULT_WM;
layout(constant_id = 4) const uint WN = DEFAULT_WN;
layout(constant_id = 5) const uint GLU = DEFAULT_GLU;

layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, X, Scales, Dst, Pairs, Tiles;
    uint M, K, Blocks, Used, DstStride, First, Last, pad0;
} a;

#define BYTES_ALONE
#include "int8.glsl"
#include "int8_types.glsl"
#include "half_types.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) buffer OutFloats4 { vec4 f[]; };

const uint TM = 16, TN = 16, TK = 16; // of one cooperative matrix
const uint BK = 64, CHUNKS = BK / 32; // columns of a step, chunks of a row
const uint ACROSS = WM / TM, DOWN = WN / TN, SUBGROUPS = BM / WM * (BN / WN);
const uint STRIDE = BK / 8 + 1;     // vecs from row to row in shared memory: no two rows meet in a bank
const uint OUT_STRIDE = WM / 4 + 1; // vecs, of 4 floats, of a row on its way out
const uint IN_VECS = (BM + BN) * STRIDE, OUT_VECS = SUBGROUPS * TN * OUT_STRIDE;
const uint SHARED_VECS = IN_VECS > OUT_VECS ? IN_VECS : OUT_VECS;
const uint W_CHUNKS = BM * CHUNKS / LANES, X_VECS = BN * BK / 8 / LANES; // that a lane brings in a step
const uint OUTS = GLU != 0 ? BM / 2 : BM;                                // rows of the output

shared uvec4 tile[SHARED_VECS]; // X (BN, STRIDE), W (BM, STRIDE); at last each subgroup's outputs

bool given(uvec2 address) { return (address.x | address.y) != 0; }

// out_row is the row of the output that row r of the W in shared memory is of.
uint out_row(uint r) { return GLU != 0 ? r / 32 * 16 + r % 16 : r; }

// column is where X's `part`th 8 values of a step lie in a row.
uint column(uint step, uint part)
{
    uint chunk = step * CHUNKS + part / 4;
    return (part / 2 % 2 == 0 ? first_of(chunk) : second_of(chunk)) + part % 2 * 8;
}

uint pair_of(uvec4 t, uint n) { return Words(a.Pairs).w[t.y + min(n, t.z - 1)]; }

void main()
{
    uint m0 = group() / a.Blocks * OUTS;
    if (m0 >= a.M)
        return;
    uvec4 t = Words4(a.Tiles).w[group() % a.Blocks]; // expert, first of Pairs, how many
    if (t.z == 0 || t.x < a.First || t.x >= a.Last)
        return;
    uvec2 w0 = Words2(a.W0).w[t.x], w1 = w0;
    if (GLU != 0)
        w1 = Words2(a.W1).w[t.x];
    if (!given(w0) || !given(w1))
        return;
    uint lane = gl_LocalInvocationID.x;
    uint wm = gl_SubgroupID % (BM / WM) * WM, wn = gl_SubgroupID / (BM / WM) * WN;

    // Rows and pairs past the edge repeat the last one.
    Row w[W_CHUNKS];
    [[unroll]] for (uint i = 0; i < W_CHUNKS; i++) {
        uint r = (lane + i * LANES) / CHUNKS;
        w[i] = w_row(GLU != 0 && r / 16 % 2 != 0 ? w1 : w0, min(m0 + out_row(r), a.M - 1));
    }
    uint part = lane % 8, member = lane % CHUNKS;
    uvec2 x[X_VECS];
    [[unroll]] for (uint i = 0; i < X_VECS; i++) {
        uint row = pair_of(t, (lane + i * LANES) / 8) / a.Used;
        x[i] = advance(advance(a.X, row / TILE_ROWS, padded(a.K) * TILE_ROWS * 2), row % TILE_ROWS, TILE_COLS * 2);
    }

    coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator> acc[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        acc[i] = coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator>(0.0);

    // Of a last step that is half a one the second chunk repeats the first: X's columns there are zeros.
    uint chunks = a.K / 32, steps = padded(a.K) / BK;
    Chunk raw[W_CHUNKS];
    uvec4 rx[X_VECS];
    uint k = column(0, part);
    [[unroll]] for (uint i = 0; i < W_CHUNKS; i++)
        raw[i] = load_chunk(w[i], min(member, chunks - 1));
    [[unroll]] for (uint i = 0; i < X_VECS; i++)
        rx[i] = Words4(x[i]).w[k / TILE_COLS * TILE_VECS + k % TILE_COLS / 8];
    [[dont_unroll]] for (uint step = 0; step < steps; step++) {
        uint mine = min(step * CHUNKS + member, chunks - 1);
        barrier();
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            tile[(lane + i * LANES) / 8 * STRIDE + part] = rx[i];
        [[unroll]] for (uint i = 0; i < W_CHUNKS; i++) {
            uvec4 q1, q2;
            vec2 s1, s2;
            parts(raw[i], mine, q1, q2, s1, s2);
            uint to = (BN + (lane + i * LANES) / CHUNKS) * STRIDE + member * 4;
            tile[to] = eight(q1.x, q1.y, s1);
            tile[to + 1] = eight(q1.z, q1.w, s1);
            tile[to + 2] = eight(q2.x, q2.y, s2);
            tile[to + 3] = eight(q2.z, q2.w, s2);
        }
        barrier();
        uint next = step + 1 < steps ? step + 1 : 0; // the last brings what nobody reads
        k = column(next, part);
        [[unroll]] for (uint i = 0; i < W_CHUNKS; i++)
            raw[i] = load_chunk(w[i], min(next * CHUNKS + member, chunks - 1));
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            rx[i] = Words4(x[i]).w[k / TILE_COLS * TILE_VECS + k % TILE_COLS / 8];
        [[unroll]] for (uint c = 0; c < BK / TK; c++) {
            coopmat<float16_t, gl_ScopeSubgroup, TN, TK, gl_MatrixUseA> xm[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; i++)
                coopMatLoad(xm[i], tile, (wn + i * TN) * STRIDE + c * TK / 8, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TM, gl_MatrixUseB> wmat;
                coopMatLoad(wmat, tile, (BN + wm + j * TM) * STRIDE + c * TK / 8, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; i++)
                    acc[j * DOWN + i] = coopMatMulAdd(xm[i], wmat, acc[j * DOWN + i]);
            }
        }
    }
    barrier();

    // Out by 16 pairs of a subgroup at a time, through its own part of the shared memory.
    const uint QUADS = GLU != 0 ? WM / 8 : WM / 4; // runs of 4 values of a row
    uint mine = gl_SubgroupID * TN * OUT_STRIDE;
    bool whole = (a.DstStride & 3) == 0;
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(acc[j * DOWN + i], tile, mine + j * TM / 4, OUT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        for (uint v = gl_SubgroupInvocationID; v < TN * QUADS; v += gl_SubgroupSize) {
            uint n = wn + i * TN + v / QUADS, quad = v % QUADS;
            uint m = m0 + (GLU != 0 ? wm / 2 : wm) + quad * 4;
            if (n >= t.z || m >= a.M)
                continue;
            uint pair = pair_of(t, n), at = mine + v / QUADS * OUT_STRIDE;
            float scale = Floats(a.Scales).f[pair / a.Used];
            vec4 y;
            if (GLU != 0) { // 16 gates, then 16 of the others
                vec4 gate = uintBitsToFloat(tile[at + quad / 4 * 8 + quad % 4]) * scale;
                y = gate / (1.0 + exp(-max(gate, -88.0))) * (uintBitsToFloat(tile[at + quad / 4 * 8 + 4 + quad % 4]) * scale);
            } else
                y = uintBitsToFloat(tile[at + quad]) * scale;
            uvec2 row = advance(a.Dst, pair, a.DstStride * 4);
            if (whole && m + 4 <= a.M) {
                OutFloats4(row).f[m / 4] = y;
                continue;
            }
            [[unroll]] for (uint c = 0; c < 4; c++)
                if (m + c < a.M)
                    Floats(row).f[m + c] = y[c];
        }
        subgroupBarrier();
    }
}
