// What rope_kv and rope_norm_kv do, to the same bits, for the heads of a workgroup of flash_attn_split in a step of one row: GROUP
// heads of queries and, behind them, the new key, which stand in parts: nothing else needs that until the teams meet. The new key and value
// are rounded to the cache's type in shared memory too, for all whose positions include theirs.
#include "kv_put.glsl"

const uint QUADS = KEY / 4;                                   // runs of 4 values of a head
const uint ROW_LANES = KEY <= 64 ? 16 : KEY <= 128 ? 32 : 64; // rope_norm_kv's: what decides the order of a head's sum
const uint TURNS = (GROUP + 1) * ROW_LANES;                   // lanes that would have one run each; a lane does for three
const uint SQUARES = (GROUP + 1) * QUADS;                     // where they are in parts
const uint VALUE_LANE = LANES / 2;                            // the first of those that bring the new value

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutWords4 { uvec4 w[]; };

shared Raw new_key[KEY / 8], new_value[VAL / 8];

#define ROPE_DIM (a.Turn & ~1u)
#define NEOX ((a.Turn & 1) != 0)
#define EACH_TURN(F) F(0) F(1) F(2)
#define TURN_AT(n) uint i = gl_LocalInvocationID.x + (n) * LANES, head = i / ROW_LANES, t = i % ROW_LANES; bool there = i < TURNS && t < QUADS;

// Asked is what a lane has loaded ahead of all else: of each of its runs the values, the weights of the norm, cosines and
// sines; and 8 values of the new value.
struct Asked {
    vec4 x[3], w[3], cs[3], lo, hi;
};

bool norms() { return (a.QNorm.x | a.QNorm.y) != 0; }

Asked asked(uint head0, uint headKV)
{
    Asked k;
    bool normed = norms();
#define ASK_TURN(n) \
    { \
        TURN_AT(n) \
        k.x[n] = k.w[n] = k.cs[n] = vec4(0); \
        if (there) { \
            k.x[n] = Floats4(head < GROUP ? advance(a.Q, head0 + head, KEY * 4) : advance(from_q(a.K), headKV, KEY * 4)).f[t]; \
            if (normed) \
                k.w[n] = Floats4(head < GROUP ? a.QNorm : a.KNorm).f[t]; \
            if (t < ROPE_DIM / 4) \
                k.cs[n] = Floats4(from_q(a.CosSin)).f[t]; \
        } \
    }
    EACH_TURN(ASK_TURN)
    k.lo = k.hi = vec4(0);
    uint e = gl_LocalInvocationID.x - VALUE_LANE;
    if (e < VAL / 8) {
        Floats4 v = Floats4(advance(from_q(a.V), headKV, VAL * 4));
        k.lo = v.f[2 * e];
        k.hi = v.f[2 * e + 1];
    }
    return k;
}

// scale_head is what the values of a head are multiplied by.
float scale_head(uint head)
{
    uint base = SQUARES + head * (ROW_LANES / 4);
    precise vec4 v[ROW_LANES / 8];
    [[unroll]] for (uint i = 0; i < ROW_LANES / 8; i++)
        v[i] = parts[base + i] + parts[base + i + ROW_LANES / 8];
    [[unroll]] for (uint s = ROW_LANES / 16; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++)
            v[i] = v[i] + v[i + s];
    precise vec2 two = v[0].xy + v[0].zw;
    precise float sum = two.x + two.y;
    precise float mean = sum / float(a.KeyLen); // not by KEY: a driver may make a product of that
    precise float scale = 1.0 / sqrt(mean + a.Eps);
    return scale;
}

// two_of are two neighbours of a head, whose runs begin at base.
vec2 two_of(uint base, uint i)
{
    vec4 v = parts[base + i / 4];
    return (i & 2) == 0 ? v.xy : v.zw;
}

void set_two(uint base, uint i, vec2 v)
{
    parts[base + i / 4][i & 2] = v.x;
    parts[base + i / 4][(i & 2) + 1] = v.y;
}

// turn leaves the heads, turned, in parts. All lanes of the workgroup come here together.
void turn(Asked k)
{
#define LEAVE_RUN(n) \
    { \
        TURN_AT(n) \
        if (there) \
            parts[head * QUADS + t] = k.x[n]; \
    }
    if (norms()) {
#define LEAVE_SQUARES(n) \
        { \
            TURN_AT(n) \
            precise vec4 each = fma(k.x[n], k.x[n], vec4(0)); \
            precise float own = (each.x + each.y) + (each.z + each.w); \
            if (i < TURNS) \
                parts[SQUARES + i / 4][i % 4] = own; \
        }
        EACH_TURN(LEAVE_SQUARES)
        barrier();
#define NORM_RUN(n) \
        { \
            TURN_AT(n) \
            if (there) { \
                precise vec4 y = k.x[n] * scale_head(head) * k.w[n]; \
                k.x[n] = y; \
            } \
        }
        EACH_TURN(NORM_RUN)
    }
    EACH_TURN(LEAVE_RUN)
    barrier();

    // Two pairs, of which each side's two values are neighbours, as in rope_kv.
    vec2 x[3], y[3];
#define FIRST(t) (NEOX ? 2 * (t) : 4 * (t))
#define SECOND(t) (NEOX ? 2 * (t) + ROPE_DIM / 2 : 4 * (t) + 2)
#define TURN_RUN(n) \
    { \
        TURN_AT(n) \
        if (there && t < ROPE_DIM / 4) { \
            vec2 p = two_of(head * QUADS, FIRST(t)), q = two_of(head * QUADS, SECOND(t)), c = k.cs[n].xz, s = k.cs[n].yw; \
            vec2 x0 = NEOX ? p : vec2(p.x, q.x), x1 = NEOX ? q : vec2(p.y, q.y); \
            precise vec2 y0 = x0 * c - x1 * s; \
            precise vec2 y1 = x0 * s + x1 * c; \
            x[n] = NEOX ? y0 : vec2(y0.x, y1.x); \
            y[n] = NEOX ? y1 : vec2(y0.y, y1.y); \
        } \
    }
    EACH_TURN(TURN_RUN)
    barrier();
#define SET_RUN(n) \
    { \
        TURN_AT(n) \
        if (there && t < ROPE_DIM / 4) { \
            set_two(head * QUADS, FIRST(t), x[n]); \
            set_two(head * QUADS, SECOND(t), y[n]); \
        } \
    }
    EACH_TURN(SET_RUN)
    barrier();
}

Raw rounded(vec4 lo, vec4 hi)
{
#ifdef TYPE_F16
    return Raw(uvec4(half_bits(lo.x) | half_bits(lo.y) << 16, half_bits(lo.z) | half_bits(lo.w) << 16, half_bits(hi.x) | half_bits(hi.y) << 16, half_bits(hi.z) | half_bits(hi.w) << 16));
#else
    return Raw(floatBitsToUint(lo), floatBitsToUint(hi));
#endif
}

void put_eight(uvec2 row, uint i, Raw r)
{
#ifdef TYPE_F16
    OutWords4(row).w[i] = r.w;
#else
    OutWords4(row).w[2 * i] = r.lo;
    OutWords4(row).w[2 * i + 1] = r.hi;
#endif
}

// renew rounds the new key, which stands turned in parts, and the new value, and stores them into the cache if it is this
// workgroup that shall. All lanes of the workgroup come here together.
void renew(Asked k, Place at, uint headKV, bool stores)
{
    uint i = gl_LocalInvocationID.x, e = i - VALUE_LANE;
    if (i < KEY / 8) {
        Raw r = rounded(parts[GROUP * QUADS + 2 * i], parts[GROUP * QUADS + 2 * i + 1]);
        new_key[i] = r;
        if (stores)
            put_eight(kv_head(at.k, headKV, KEY), i, r);
    }
    if (e < VAL / 8) {
        Raw r = rounded(k.lo, k.hi);
        new_value[e] = r;
        if (stores)
            put_eight(kv_head(at.v, headKV, VAL), e, r);
    }
}
