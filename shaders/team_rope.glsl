// The frame of mul_mat_vec_rope, where team.glsl is that of other products in teams: Q, K and V are products of one X, and go on as rope
// and kv_append would take them, Q to Dst, K and V into the cache of floats or halves. Of the three any may be missing: its address is 0.
//
// The outputs are counted so that four from a multiple of 4 on are two pairs that turn, each side's two of them neighbours, as in rope_kv: a word
// of the cache is one lane's. Which team sums an output up is the tile's affair; the sums meet in shared memory, and there
// a lane takes four of one column, for which it has asked for all else before the sums were made.

#include "team_shape.glsl"
layout(constant_id = 5) const uint KEY = DEFAULT_KEY; // values of a head
layout(constant_id = 6) const uint VAL = DEFAULT_VAL;
layout(constant_id = 7) const uint TURNS = DEFAULT_TURNS; // of them that turn
layout(constant_id = 8) const uint NEOX = DEFAULT_NEOX;
layout(constant_id = 9) const uint FLOATS = DEFAULT_FLOATS; // of the cache

layout(push_constant, std430) uniform Args {
    uvec2 W0, W1, W2, Bias0, Bias1, Bias2, X, S, Dst, CosSin, Pages, Pos, Seq;
    uint K, N, Heads, MaxPages, PagePositions, LayerOff; // Heads: of Q, and from bit 16 on of K and V
} a;

const bool HALVES = NEOX != 0; // a pair's two
const uint TEAMS = LANES / TEAM;
const uint OUTS = TEAMS * NUM_ROWS; // of a workgroup and column
const uint QUADS = OUTS / 4;
const uint MAX_PARTS = LANES / 4;
shared float partial[NUM_ROWS * NUM_COLS * MAX_PARTS]; // (rows, columns, parts of teams)

#define KV_FLOATS FLOATS
#define KEY_LEN KEY
#define VAL_LEN VAL
#define HEADS_KV (a.Heads >> 16)
#define Place CachePlace
#include "kv.glsl"
#undef Place
#include "kv_put.glsl"

bool given(uvec2 address) { return (address.x | address.y) != 0; }

float acc[NUM_ROWS][NUM_COLS];
uint lane, member; // of the workgroup, of the team
uint row0, col0;   // of the team's outputs
uint outs0;        // of the workgroup's
uint of_q, of_k, rows;

// What a lane takes of the sums: four outputs of a column.
bool takes, turns, biased;
uint quad, column;   // of the workgroup
uint matrix, head;   // whose they are
uint first, second;  // of the head's values: where two neighbours begin
uint seq, pos;       // of keys and values
uvec2 page;          // for them
vec4 angles, biases; // angles: cos and sin of two pairs

// Place is a row of one of the matrices.
struct Place {
    uint matrix, row;
};

// in_head is the value of a head that comes t-th.
uint in_head(uint t)
{
    if (HALVES)
        return t < TURNS ? t / 4 * 2 + (t & 1) + (t & 2) / 2 * (TURNS / 2) : t;
    return t;
}

Place place_of(uint m)
{
    if (m >= of_q + of_k)
        return Place(2, m - of_q - of_k);
    bool key = m >= of_q;
    m -= key ? of_q : 0;
    return Place(key ? 1 : 0, m / KEY * KEY + in_head(m % KEY));
}

// Rows and columns past the edge repeat the last one; no lane takes them.
Place team_row(uint r) { return place_of(min(row0 + r, rows - 1)); }

uint team_col(uint c) { return min(col0 + c, a.N - 1); }
#define x_row team_col

uvec2 pick(uint of, uvec2 zero, uvec2 one, uvec2 two) { return of == 0 ? zero : of == 1 ? one : two; }

uvec2 weights_of(Place p) { return pick(p.matrix, a.W0, a.W1, a.W2); }

// ask finds what the lane will take, and loads what comes with it.
void ask()
{
    quad = lane % QUADS;
    column = lane / QUADS;
    uint m = outs0 + 4 * quad, n = col0 + column;
    takes = column < NUM_COLS && m < rows && n < a.N;
    if (!takes)
        return;
    Place p = place_of(m);
    matrix = p.matrix;
    if (matrix != 0) {
        seq = Words(a.Seq).w[n];
        pos = Words(a.Pos).w[n];
    }
    uint len = matrix == 2 ? VAL : KEY, t = (m - (matrix == 0 ? 0 : matrix == 1 ? of_q : of_q + of_k)) % len;
    head = p.row / len;
    turns = matrix != 2 && t < TURNS;
    first = turns ? in_head(t) : t;
    second = turns ? in_head(t + 2) : t + 2;
    if (turns)
        angles = Floats4(advance(a.CosSin, n, TURNS * 4)).f[t / 4];
    uvec2 bias = pick(matrix, a.Bias0, a.Bias1, a.Bias2);
    biased = given(bias);
    if (biased) {
        Floats b = Floats(advance(bias, head, len * 4));
        biases = vec4(b.f[first], b.f[first + 1], b.f[second], b.f[second + 1]);
    }
}

// ask_more loads what depends on that, and is used last.
void ask_more()
{
    if (takes && matrix != 0)
        page = page_of(seq, pos);
}

// team_begin is false for the workgroups of a grid that are too many.
bool team_begin()
{
    of_q = given(a.W0) ? (a.Heads & 0xffff) * KEY : 0;
    of_k = given(a.W1) ? HEADS_KV * KEY : 0;
    rows = of_q + of_k + (given(a.W2) ? HEADS_KV * VAL : 0);
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS, rowBlocks = (rows + OUTS - 1) / OUTS;
    lane = subgroup_lane();
    member = lane % TEAM;
    outs0 = group() / colBlocks * OUTS;
    row0 = outs0 + lane / TEAM * NUM_ROWS;
    col0 = group() % colBlocks * NUM_COLS;
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;
    ask();
    return group() < rowBlocks * colBlocks;
}

// total is the sum of the workgroup's output m in the lane's column, of so many parts: added up as in team.glsl.
float total(uint m, uint parts)
{
    uint at = (m % NUM_ROWS * NUM_COLS + column) * MAX_PARTS + m / NUM_ROWS * parts;
    if (parts == 1)
        return partial[at];
    float sum = 0;
    for (uint p = 0; p < parts; p++)
        sum += partial[at + p];
    return sum;
}

// leave stores two pairs of a head, or four neighbours.
void leave(vec2 x, vec2 y)
{
    if (turns) { // the arithmetic of rope_kv
        vec2 c = angles.xz, s = angles.yw;
        vec2 x0 = HALVES ? x : vec2(x.x, y.x), x1 = HALVES ? y : vec2(x.y, y.y);
        precise vec2 y0 = x0 * c - x1 * s;
        precise vec2 y1 = x0 * s + x1 * c;
        x = HALVES ? y0 : vec2(y0.x, y1.x);
        y = HALVES ? y1 : vec2(y0.y, y1.y);
    }
    if (matrix == 0) {
        Floats q = Floats(advance(advance(a.Dst, col0 + column, of_q * 4), head, KEY * 4));
        q.f[first] = x.x;
        q.f[first + 1] = x.y;
        q.f[second] = y.x;
        q.f[second + 1] = y.y;
        return;
    }
    CachePlace at = in_page(page, pos);
    uvec2 to = matrix == 1 ? kv_head(at.k, head, KEY) : kv_head(at.v, head, VAL);
    put(to, first, x.x, x.y);
    put(to, second, y.x, y.y);
}

void team_end()
{
    uint width = min(TEAM, gl_SubgroupSize), parts = TEAM / width;
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            float sum = sum_within(acc[r][c], width);
            if (lane % width == 0)
                partial[(r * NUM_COLS + c) * MAX_PARTS + lane / width] = sum;
        }
    barrier();
    if (!takes)
        return;
    vec4 x;
    [[unroll]] for (uint i = 0; i < 4; i++)
        x[i] = total(4 * quad + i, parts);
    if (biased)
        x += biases;
    leave(x.xy, x.zw);
}
