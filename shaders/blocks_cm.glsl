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
layout(constant_id = 8) const uint WIDE = DEFAULT_WIDE;     // 1: fewer loads, see chunk_loads.glsl
layout(constant_id = 9) const uint GLU = DEFAULT_GLU;       // 1: of W's rows 16 are gates, 16 what they let through, and so on

#define BYTES_ALONE
#include "int8.glsl"
#include "int8_types.glsl"
#include "half_types.glsl"
#include "chunk_loads.glsl"

const uint TM = 16, TN = 16, TK = 16; // of one cooperative matrix
const uint PARTS = BK / 8, CHUNKS = BK / 32; // of a row in a step: vecs of 8 halves, chunks
const uint ACROSS = WM / TM, DOWN = WN / TN, SUBGROUPS = BM / WM * (BN / WN);
const uint STRIDE = PARTS + 1;      // vecs from row to row in shared memory: no two rows meet in a bank
const uint OUT_STRIDE = WM / 4 + 1; // vecs, of 4 floats, of a row on its way out
const uint STEP_VECS = (BM + BN) * STRIDE, IN_VECS = STEP_VECS * STAGES, OUT_VECS = SUBGROUPS * TN * OUT_STRIDE;
const uint SHARED_VECS = IN_VECS > OUT_VECS ? IN_VECS : OUT_VECS;
const uint X_VECS = BN * PARTS / LANES;                                 // that a lane brings in a step
const uint W_CHUNKS = BM * CHUNKS > LANES ? BM * CHUNKS / LANES : 1;    // the same
const uint SHARE = BM * CHUNKS < LANES ? LANES / (BM * CHUNKS) : 1;     // lanes that decode a chunk together, up to 4

const uint OUTS = GLU != 0 ? BM / 2 : BM;       // rows of the output
const uint QUADS = GLU != 0 ? WM / 8 : WM / 4;  // runs of 4 values of a row that a subgroup makes

shared uvec4 tile[SHARED_VECS]; // of each stage X (BN, STRIDE), W (BM, STRIDE); at last each subgroup's outputs

uint m0, n0, wm, wn; // the first row of W, of X; a subgroup's within these

// w_member and x_member are the rows whose i-th chunk and vec a lane brings.
uint w_member(uint i) { return (gl_LocalInvocationID.x / SHARE + i * LANES) / CHUNKS; }
uint x_member(uint i) { return (gl_LocalInvocationID.x + i * LANES) / PARTS; }

// column is where X's `part`th 8 values of a step lie in a row.
uint column(uint step, uint part)
{
    uint chunk = step * CHUNKS + part / 4;
    return (part / 2 % 2 == 0 ? first_of(chunk) : second_of(chunk)) + part % 2 * 8;
}

// vec_of is where the run of column k lies, counted from the row's first.
uint vec_of(uint k) { return k / TILE_COLS * TILE_VECS + k % TILE_COLS / 8; }

// out_row is the row of the output that row r of the W in shared memory is of.
uint out_row(uint r) { return GLU != 0 ? r / 32 * 16 + r % 16 : r; }

void put(uint n, uint quad, uint at);

// let_through are 4 values that gates let through, of a row of X whose scale is given.
vec4 let_through(uint quad, uint at, float scale)
{
    vec4 gate = uintBitsToFloat(tile[at + quad / 4 * 8 + quad % 4]) * scale;
    return gate / (1.0 + exp(-max(gate, -88.0))) * (uintBitsToFloat(tile[at + quad / 4 * 8 + 4 + quad % 4]) * scale);
}

// decode brings a lane's part of a chunk into shared memory, where that begins at `to`.
void decode(Chunk raw, uint chunk, uint to)
{
    uvec4 q1, q2;
    vec2 s1, s2;
    parts(raw, chunk, q1, q2, s1, s2);
    [[unroll]] for (uint i = 0; i < 4 / SHARE; i++) {
        uint v = gl_LocalInvocationID.x % SHARE * (4 / SHARE) + i;
        uvec4 q = v < 2 ? q1 : q2;
        uvec2 two = v % 2 == 0 ? q.xy : q.zw;
        vec2 s = v < 2 ? s1 : s2;
        tile[to + v] = HALVES != 0 ? eight_halves(two.x, two.y, centred(s)) : eight(two.x, two.y, s);
    }
}
