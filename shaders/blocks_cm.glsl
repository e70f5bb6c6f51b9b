// What mul_mat_id_cm and mul_mat_q_cm have in common: BM rows of W in blocks times BN rows of X in tiles, summed in float32 by
// cooperative matrices. W is decoded on its way into shared memory: while a step of BK columns is multiplied, the bytes of the
// next are under way. The columns come in the order in which the type's chunks hold them; X's do too.
//
// With two STAGES a step is stored beside the one that others may still multiply, so that they meet once a step and not twice.
// An includer has LANES, the constants below, Args and
//   void put(uint n, uint quad, uint at)   takes the sums of a row of X: of which outputs, and where in shared memory
// and in its main, before blocks_cm_sums.glsl, rows w[W_CHUNKS] and
//   X_VEC(i, k)                            the i-th run of 8 values that a lane brings, at column k

layout(constant_id = 1) const uint BM = DEFAULT_BM;
layout(constant_id = 2) const uint BN = DEFAULT_BN;
layout(constant_id = 3) const uint BK = DEFAULT_BK;
layout(constant_id = 4) const uint WM = DEFAULT_WM;         // a subgroup's part
layout(constant_id = 5) const uint WN = DEFAULT_WN;
layout(constant_id = 6) const uint STAGES = DEFAULT_STAGES; // 1 or 2
layout(constant_id = 7) const uint HALVES = DEFAULT_HALVES; // 1: weights are decoded by arithmetic of halves

#define BYTES_ALONE
#include "int8.glsl"
#include "int8_types.glsl"
#include "half_types.glsl"

const uint TM = 16, TN = 16, TK = 16; // of one cooperative matrix
const uint PARTS = BK / 8, CHUNKS = BK / 32; // of a row in a step: vecs of 8 halves, chunks
const uint ACROSS = WM / TM, DOWN = WN / TN, SUBGROUPS = BM / WM * (BN / WN);
const uint STRIDE = PARTS + 1;      // vecs from row to row in shared memory: no two rows meet in a bank
const uint OUT_STRIDE = WM / 4 + 1; // vecs, of 4 floats, of a row on its way out
const uint STEP_VECS = (BM + BN) * STRIDE, IN_VECS = STEP_VECS * STAGES, OUT_VECS = SUBGROUPS * TN * OUT_STRIDE;
const uint SHARED_VECS = IN_VECS > OUT_VECS ? IN_VECS : OUT_VECS;
const uint W_CHUNKS = BM * CHUNKS / LANES, X_VECS = BN * PARTS / LANES; // that a lane brings in a step

shared uvec4 tile[SHARED_VECS]; // of each stage X (BN, STRIDE), W (BM, STRIDE); at last each subgroup's outputs

uint m0, n0, wm, wn; // the first row of W, of X; a subgroup's within these

// w_member and x_member are the rows whose i-th chunk and vec a lane brings.
uint w_member(uint i) { return (gl_LocalInvocationID.x + i * LANES) / CHUNKS; }
uint x_member(uint i) { return (gl_LocalInvocationID.x + i * LANES) / PARTS; }

// column is where X's `part`th 8 values of a step lie in a row.
uint column(uint step, uint part)
{
    uint chunk = step * CHUNKS + part / 4;
    return (part / 2 % 2 == 0 ? first_of(chunk) : second_of(chunk)) + part % 2 * 8;
}

// vec_of is where the run of column k lies, counted from the row's first.
uint vec_of(uint k) { return k / TILE_COLS * TILE_VECS + k % TILE_COLS / 8; }

void put(uint n, uint quad, uint at);

// decode brings a chunk into shared memory.
void decode(Chunk raw, uint chunk, uint to)
{
    uvec4 q1, q2;
    vec2 s1, s2;
    parts(raw, chunk, q1, q2, s1, s2);
    if (HALVES != 0) {
        f16vec4 h1 = centred(s1), h2 = centred(s2);
        tile[to] = eight_halves(q1.x, q1.y, h1);
        tile[to + 1] = eight_halves(q1.z, q1.w, h1);
        tile[to + 2] = eight_halves(q2.x, q2.y, h2);
        tile[to + 3] = eight_halves(q2.z, q2.w, h2);
        return;
    }
    tile[to] = eight(q1.x, q1.y, s1);
    tile[to + 1] = eight(q1.z, q1.w, s1);
    tile[to + 2] = eight(q2.x, q2.y, s2);
    tile[to + 3] = eight(q2.z, q2.w, s2);
}
