#version 460
// flash_attn_cm: flash_attn of rows of one sequence over an F16, Q8_0 or Q4_0 cache, by cooperative matrices: neither the first nor the last position that
// a row sees lies before that of the row above it. A workgroup takes 16 rows a subgroup of one query head, and 32 positions at a time: while they
// are computed with, the next are on their way into registers.
//
// Weights are exp2(score - top), top being near the row's highest score: it is raised, and what has been summed
// scaled down, only when a score of that row comes that is SLACK above it. So scores need not leave their matrices, whose
// elements lie where the device likes; a product with ones sums the weights.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
layout(constant_id = 1) const uint SUBGROUP = DEFAULT_SUBGROUP; // its size
layout(constant_id = 2) const uint KEY = DEFAULT_KEY;           // KeyLen, a multiple of 16
layout(constant_id = 3) const uint VAL = DEFAULT_VAL;           // ValLen
layout(constant_id = 4) const uint OPTIONS = DEFAULT_OPTIONS;   // bits; what is off leaves no code
layout(constant_id = 5) const uint STAGES = DEFAULT_STAGES;     // 2: positions are stored beside those that others still compute with
#define LANES_ID 0
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Q, Dst, Pages, Seen, Seq, Sinks, Slopes;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, QStride, DstStride;
    float Scale, SoftCap;
} a;

const bool SOFT_CAP = (OPTIONS & 1) != 0, SINKS = (OPTIONS & 2) != 0, SLOPES = (OPTIONS & 4) != 0;

#include "kv.glsl"
#include "kv_read.glsl"
#include "attn_seen.glsl"
#include "finite.glsl"

#if defined(TYPE_F16)
#define RUN 8 // values in 16 bytes of the cache
#elif defined(TYPE_Q8_0)
#define RUN 16
#else
#define RUN 32
#endif

const uint T = 16, STEP = 32; // of a cooperative matrix; positions
const uint SUBGROUPS = LANES / SUBGROUP, ROWS = SUBGROUPS * T;
// Rows of shared memory, in vecs of 16 bytes, one more than they need: no two meet in a bank.
const uint K_STRIDE = KEY / 8 + 1, V_STRIDE = VAL / 8 + 1, P_STRIDE = STEP / 8 + 1, S_STRIDE = STEP / 4 + 1;
const uint V_AT = STEP * K_STRIDE, STAGE_VECS = V_AT + STEP * V_STRIDE; // of a stage; K comes first
const uint S_AT = STAGES * STAGE_VECS; // a subgroup's scores, and where they were the weights that they become
const uint LOOP_VECS = S_AT + SUBGROUPS * T * S_STRIDE;
const uint Q_VECS = ROWS * K_STRIDE, OUT = 4, OUT_STRIDE = OUT * T / 4 + 1, OUT_VECS = ROWS * OUT_STRIDE; // before and after
const uint SIDE_VECS = Q_VECS > OUT_VECS ? Q_VECS : OUT_VECS;
const uint K_RUNS = STEP * KEY / RUN, V_RUNS = STEP * VAL / RUN;
const uint K_VECS = (K_RUNS + LANES - 1) / LANES, V_VECS = (V_RUNS + LANES - 1) / LANES; // that a lane brings
// Where rows must be told apart: lanes that share a row, the scores each looks at, and the rows it looks at, LANE_ROWS apart.
const uint PARTS = SUBGROUP > T ? SUBGROUP / T : 1, WIDTH = STEP / PARTS;
const uint LANE_ROWS = SUBGROUP / PARTS, LOOKS = T / LANE_ROWS;
const float NONE = -3.0e38, LEAST = -1.0e30, SLACK = 8, LOG2_E = 1.44269504; // LEAST is more than of what is not seen

#define ACC coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator>
// The outputs' matrices have names: NVIDIA's driver (580) keeps an array of them in memory, 2.5 times as slow.
#define ALL(F) F(o0, 0) F(o1, 1) F(o2, 2) F(o3, 3) F(o4, 4) F(o5, 5) F(o6, 6) F(o7, 7)

shared uvec4 mem[LOOP_VECS > SIDE_VECS ? LOOP_VECS : SIDE_VECS];

// together has the lanes of a subgroup see what they wrote. Where code that not all subgroups run has a subgroupBarrier,
// Mesa's lavapipe (26.1) waits for those subgroups, too; its subgroups of 8 run in step.
void together()
{
    if (SUBGROUP > 8)
        subgroupBarrier();
    else
        subgroupMemoryBarrierShared();
}

uvec4 halves(vec4 lo, vec4 hi)
{
    return uvec4(packHalf2x16(lo.xy), packHalf2x16(lo.zw), packHalf2x16(hi.xy), packHalf2x16(hi.zw));
}

// eight is values 8i … 8i+7 of a run that was loaded, whose scale is d, as halves.
uvec4 eight(uvec4 w, float d, uint i)
{
#if defined(TYPE_F16)
    return w;
#elif defined(TYPE_Q8_0)
    return halves(quants4(w[2 * i]) * d, quants4(w[2 * i + 1]) * d);
#else
    return halves(quants4(w[i]) * d, quants4(w[i] >> 4) * d);
#endif
}

// A lane's share of the next positions. Of blocks each run has a scale.
#ifdef BLOCKS
#define SCALES(name, n) float name[n];
#define LOAD_SCALE(to, from, j, len) to = kv_scale(advance(from, j / (len / RUN), scale_bytes(len)), j % (len / RUN) * RUN / 32);
#define SCALE(of) of
#else
#define SCALES(name, n)
#define LOAD_SCALE(to, from, j, len)
#define SCALE(of) 1.0
#endif

void main()
{
    uint blocks = (a.Rows + ROWS - 1) / ROWS;
    if (group() >= blocks * a.Heads)
        return;
    uint row0 = (blocks - 1 - group() / a.Heads) * ROWS, head = group() % a.Heads; // the longest first
    uint headKV = head / (a.Heads / a.HeadsKV);
    uint lane = gl_LocalInvocationID.x, sub = gl_SubgroupID, sl = gl_SubgroupInvocationID;
    uint seq = Words(a.Seq).w[row0];
    uint last = last_seen(min(row0 + ROWS, a.Rows) - 1); // the highest position

    // The query, scaled, as halves, then into registers for good.
    precise float scale = SOFT_CAP ? a.Scale / a.SoftCap : a.Scale * LOG2_E;
    for (uint i = lane; i < ROWS * (KEY / 8); i += LANES) {
        uint r = i / (KEY / 8), d = i % (KEY / 8) * 8;
        Floats q = Floats(advance(advance(a.Q, min(row0 + r, a.Rows - 1), a.QStride * 4), head, a.KeyLen * 4));
        precise vec4 lo = vec4(q.f[d], q.f[d + 1], q.f[d + 2], q.f[d + 3]) * scale;
        precise vec4 hi = vec4(q.f[d + 4], q.f[d + 5], q.f[d + 6], q.f[d + 7]) * scale;
        mem[r * K_STRIDE + d / 8] = halves(lo, hi);
    }
    barrier();
    coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseA> q[KEY / T];
    [[unroll]] for (uint d = 0; d < KEY / T; d++)
        coopMatLoad(q[d], mem, sub * T * K_STRIDE + d * T / 8, K_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    if (STAGES > 1) // the loop's first barrier comes after what it stores
        barrier();
#define BEGIN(o, d) ACC o = ACC(0.0);
    ALL(BEGIN)
    ACC total = ACC(0.0), top = ACC(LEAST);
    coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB> ones = coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB>(float16_t(1.0));

    uint row = sl / PARTS, part = sl % PARTS;
    uint subRow = row0 + sub * T;
    uint from[LOOKS], to[LOOKS]; // what the lane's rows see
    float rowTop[LOOKS];
    [[unroll]] for (uint l = 0; l < LOOKS; l++) {
        from[l] = first_seen(min(subRow + row + l * LANE_ROWS, a.Rows - 1));
        to[l] = last_seen(min(subRow + row + l * LANE_ROWS, a.Rows - 1));
        rowTop[l] = LEAST;
    }
    // The subgroup's first and last row. All of its rows see the positions from subAll to subFirst; none sees one before subBegin or after subLast.
    uint upper = min(subRow, a.Rows - 1), lower = max(upper, min(subRow + T, a.Rows) - 1);
    uint subBegin = first_seen(upper), subAll = first_seen(lower), subFirst = last_seen(upper), subLast = last_seen(lower);
    uint begin = first_seen(row0) / STEP * STEP; // of the workgroup
    float slope = SLOPES ? Floats(a.Slopes).f[head] * LOG2_E : 0;
    uint sAt = S_AT + sub * T * S_STRIDE;

    uvec4 rk[K_VECS], rv[V_VECS];
    SCALES(dk, K_VECS)
    SCALES(dv, V_VECS)
    uvec2 page = page_of(seq, begin);
    uint next = begin;
#define LOAD \
    { \
        Place at = in_page(page, next); \
        uvec2 k = kv_head(at.k, headKV, KEY), v = kv_head(at.v, headKV, VAL); \
        uvec2 ks = kv_scales(k, at.slot, KEY), vs = kv_scales(v, at.slot, VAL); \
        [[unroll]] for (uint i = 0; i < K_VECS; i++) \
            if (lane + i * LANES < K_RUNS) { \
                rk[i] = Words4(k).w[lane + i * LANES]; \
                LOAD_SCALE(dk[i], ks, (lane + i * LANES), KEY) \
            } \
        [[unroll]] for (uint i = 0; i < V_VECS; i++) \
            if (lane + i * LANES < V_RUNS) { \
                rv[i] = Words4(v).w[lane + i * LANES]; \
                LOAD_SCALE(dv[i], vs, (lane + i * LANES), VAL) \
            } \
    }
    LOAD
    page = page_of(seq, min(begin + STEP, last));
    [[dont_unroll]] for (uint now = begin; now <= last; now += STEP) {
        uint kAt = STAGES > 1 ? (now - begin) / STEP % 2 * STAGE_VECS : 0, vAt = kAt + V_AT;
        if (STAGES == 1)
            barrier();
        [[unroll]] for (uint i = 0; i < K_VECS; i++) {
            uint j = lane + i * LANES, r = j / (KEY / RUN), c = j % (KEY / RUN) * (RUN / 8);
            if (j < K_RUNS) // memory past the last position may hold NaN, which nothing hides
                [[unroll]] for (uint e = 0; e < RUN / 8; e++)
                    mem[kAt + r * K_STRIDE + c + e] = now + r <= last ? eight(rk[i], SCALE(dk[i]), e) : uvec4(0);
        }
        [[unroll]] for (uint i = 0; i < V_VECS; i++) {
            uint j = lane + i * LANES, r = j / (VAL / RUN), c = j % (VAL / RUN) * (RUN / 8);
            if (j < V_RUNS) // nor does a weight of 0
                [[unroll]] for (uint e = 0; e < RUN / 8; e++)
                    mem[vAt + r * V_STRIDE + c + e] = now + r <= last ? eight(rv[i], SCALE(dv[i]), e) : uvec4(0);
        }
        barrier();
        // The next positions; after the last ones those again, and nobody reads them.
        next = min(now + STEP, last / STEP * STEP);
        LOAD
        page = page_of(seq, min(now + 2 * STEP, last));
        if (now <= subLast && now + STEP > subBegin) {
            ACC s[STEP / T];
            [[unroll]] for (uint t = 0; t < STEP / T; t++) {
                s[t] = ACC(0.0);
                [[unroll]] for (uint d = 0; d < KEY / T; d++) {
                    coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB> key;
                    coopMatLoad(key, mem, kAt + t * T * K_STRIDE + d * T / 8, K_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                    s[t] = coopMatMulAdd(q[d], key, s[t]);
                }
            }
            if (SOFT_CAP)
                [[unroll]] for (uint t = 0; t < STEP / T; t++)
                    for (uint i = 0; i < s[t].length(); i++)
                        s[t][i] = unless_nan(s[t][i], a.SoftCap * LOG2_E * tanh(clamp(s[t][i], -15, 15)));
            if (SLOPES || now + STEP > subFirst + 1 || now < subAll) { // some rows do not see some positions
                together();
                [[unroll]] for (uint i = 0; i < LOOKS * WIDTH; i += 4) {
                    uint l = i / WIDTH, at = part * WIDTH + i % WIDTH;
                    vec4 hide;
                    [[unroll]] for (uint c = 0; c < 4; c++)
                        hide[c] = now + at + c < from[l] || now + at + c > to[l] ? NONE : SLOPES ? lean(slope, now + at + c, to[l]) : 0;
                    mem[sAt + (row + l * LANE_ROWS) * S_STRIDE + at / 4] = floatBitsToUint(hide);
                }
                together();
                [[unroll]] for (uint t = 0; t < STEP / T; t++) {
                    ACC hide;
                    coopMatLoad(hide, mem, sAt + t * T / 4, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                    s[t] = s[t] + hide;
                }
            }
            bool above = false;
            [[unroll]] for (uint t = 0; t < STEP / T; t++)
                for (uint i = 0; i < s[t].length(); i++)
                    above = above || s[t][i] > top[i] + SLACK;
            if (subgroupAny(above)) {
                together();
                [[unroll]] for (uint t = 0; t < STEP / T; t++)
                    coopMatStore(s[t], mem, sAt + t * T / 4, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                together();
                [[unroll]] for (uint l = 0; l < LOOKS; l++) {
                    uint at = sAt + (row + l * LANE_ROWS) * S_STRIDE;
                    float high = NONE;
                    [[unroll]] for (uint i = 0; i < WIDTH; i += 4) {
                        vec4 four = uintBitsToFloat(mem[at + (part * WIDTH + i) / 4]);
                        high = max(high, max(max(four.x, four.y), max(four.z, four.w)));
                    }
                    [[unroll]] for (uint x = 1; x < PARTS; x *= 2)
                        high = max(high, subgroupShuffleXor(high, x));
                    if (!(high > rowTop[l] + SLACK)) // of this row none is: others' scores must not change its bits
                        high = rowTop[l];
                    float fade = exp2(max(rowTop[l] - high, -200));
                    rowTop[l] = high;
                    together();
                    [[unroll]] for (uint c = part; c < T / 4; c += PARTS) { // columns 0…15 the new top, 16…31 what remains of the sums
                        mem[at + c] = floatBitsToUint(vec4(high));
                        mem[at + T / 4 + c] = floatBitsToUint(vec4(fade));
                    }
                }
                together();
                ACC fades;
                coopMatLoad(top, mem, sAt, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                coopMatLoad(fades, mem, sAt + T / 4, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                total = total * fades;
#define FADE(o, d) o = o * fades;
                ALL(FADE)
            }
            together();
            [[unroll]] for (uint t = 0; t < STEP / T; t++) {
                for (uint i = 0; i < s[t].length(); i++) {
                    float x = s[t][i] - top[i];
                    s[t][i] = x < -200 ? 0 : exp2(x); // NaN stays, as it does not in max
                }
                coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator> p = coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator>(s[t]);
                coopMatStore(p, mem, sAt + t * T / 8, P_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            }
            together();
            [[unroll]] for (uint t = 0; t < STEP / T; t++) {
                coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseA> p;
                coopMatLoad(p, mem, sAt + t * T / 8, P_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                total = coopMatMulAdd(p, ones, total);
                coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB> value;
#define ADD(o, d) \
        if (d < VAL / T) { \
            coopMatLoad(value, mem, vAt + t * T * V_STRIDE + d * T / 8, V_STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
            o = coopMatMulAdd(p, value, o); \
        }
                ALL(ADD)
            }
        }
    }

    barrier();
    if (SINKS) { // scores without a value
        [[unroll]] for (uint l = 0; l < LOOKS; l++) {
            float sink = exp2(min(Floats(a.Sinks).f[head] * LOG2_E - rowTop[l], 126));
            [[unroll]] for (uint c = part; c < T / 4; c += PARTS)
                mem[sAt + (row + l * LANE_ROWS) * S_STRIDE + c] = floatBitsToUint(vec4(sink));
        }
        together();
        ACC sinks;
        coopMatLoad(sinks, mem, sAt, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        total = total + sinks;
        barrier(); // the outputs take the same memory
    }
    uint outAt = sub * T * OUT_STRIDE;
    [[unroll]] for (uint d0 = 0; d0 < VAL / T; d0 += OUT) {
#define STORE(o, d) \
    if (d >= d0 && d < d0 + OUT && d < VAL / T) { \
        o = o / total; \
        coopMatStore(o, mem, outAt + (d - d0) * T / 4, OUT_STRIDE, gl_CooperativeMatrixLayoutRowMajor); \
    }
        ALL(STORE)
        together();
        [[unroll]] for (uint l = 0; l < LOOKS; l++) {
            uint r = subRow + row + l * LANE_ROWS;
            Floats dst = Floats(advance(advance(a.Dst, min(r, a.Rows - 1), a.DstStride * 4), head, a.ValLen * 4));
            for (uint c = part; c < OUT * T / 4 && d0 * T + 4 * c < VAL; c += PARTS) {
                vec4 y = uintBitsToFloat(mem[outAt + (row + l * LANE_ROWS) * OUT_STRIDE + c]);
                if (r < a.Rows)
                    [[unroll]] for (uint i = 0; i < 4; i++)
                        dst.f[d0 * T + 4 * c + i] = y[i];
            }
        }
        together();
    }
}
