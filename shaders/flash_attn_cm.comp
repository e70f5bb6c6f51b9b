#version 460
// flash_attn_cm: flash_attn of rows of one sequence with ascending positions over an F16 cache, by cooperative
// matrices. A workgroup takes 16 rows a subgroup of one query head, and 32 positions at a time: while they
// are computed with, the next are on their way into registers.
//
// Sums are taken relative to a score near the row's highest: only when one comes that is 2^8 above
// is what has been summed scaled down.
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
#define LANES_ID 0
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Q, Dst, Pages, Pos, Seq;
    uint Rows, Heads, HeadsKV, KeyLen, ValLen, MaxPages, PagePositions, LayerOff, QStride, DstStride;
    float Scale;
    uint pad0;
} a;

#define TYPE_F16
#include "kv.glsl"

const uint T = 16, STEP = 32; // of a cooperative matrix; positions
const uint SUBGROUPS = LANES / SUBGROUP, ROWS = SUBGROUPS * T;
// Rows of shared memory, in vecs of 16 bytes, one more than they need: no two meet in a bank.
const uint K_STRIDE = KEY / 8 + 1, V_STRIDE = VAL / 8 + 1, S_STRIDE = STEP / 4 + 1, P_STRIDE = STEP / 8 + 1, F_STRIDE = T / 4;
const uint K_AT = 0, V_AT = STEP * K_STRIDE, S_AT = V_AT + STEP * V_STRIDE, P_AT = S_AT + SUBGROUPS * T * S_STRIDE;
const uint F_AT = P_AT + SUBGROUPS * T * P_STRIDE, LOOP_VECS = F_AT + SUBGROUPS * T * F_STRIDE;
const uint Q_VECS = ROWS * K_STRIDE, OUT = 4, OUT_STRIDE = OUT * T / 4 + 1, OUT_VECS = ROWS * OUT_STRIDE; // before and after
const uint SIDE_VECS = Q_VECS > OUT_VECS ? Q_VECS : OUT_VECS;
const uint K_VECS = (STEP * KEY / 8 + LANES - 1) / LANES, V_VECS = (STEP * VAL / 8 + LANES - 1) / LANES; // that a lane brings
const uint PARTS = SUBGROUP / T, WIDTH = STEP / PARTS; // lanes that share a row of scores; the scores each has
const float NONE = -3.0e38, SLACK = 8, LOG2_E = 1.44269504;

shared uvec4 mem[LOOP_VECS > SIDE_VECS ? LOOP_VECS : SIDE_VECS];

uvec4 halves(vec4 lo, vec4 hi)
{
    return uvec4(packHalf2x16(lo.xy), packHalf2x16(lo.zw), packHalf2x16(hi.xy), packHalf2x16(hi.zw));
}

void main()
{
    uint blocks = (a.Rows + ROWS - 1) / ROWS;
    if (group() >= blocks * a.Heads)
        return;
    uint row0 = (blocks - 1 - group() / a.Heads) * ROWS, head = group() % a.Heads; // the longest first
    uint headKV = head / (a.Heads / a.HeadsKV);
    uint lane = gl_LocalInvocationID.x, sub = gl_SubgroupID, sl = gl_SubgroupInvocationID;
    uint seq = Words(a.Seq).w[row0];
    uint last = Words(a.Pos).w[min(row0 + ROWS, a.Rows) - 1]; // the highest position

    // The query, scaled, as halves, then into registers for good.
    precise float scale = a.Scale * LOG2_E;
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
    coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator> o[VAL / T];
    [[unroll]] for (uint d = 0; d < VAL / T; d++)
        o[d] = coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator>(0.0);

    uint row = sl / PARTS, part = sl % PARTS; // of the scores that this lane weighs
    uint pos = Words(a.Pos).w[min(row0 + sub * T + row, a.Rows - 1)];
    float top = NONE;
    precise float total = 0;
    uint sAt = S_AT + sub * T * S_STRIDE, pAt = P_AT + sub * T * P_STRIDE, fAt = F_AT + sub * T * F_STRIDE;

    uvec4 rk[K_VECS], rv[V_VECS];
    for (uint first = 0, now = 0; now <= last; first += STEP) {
        // Positions first … are brought, those before computed with: at first nothing.
        Place at = kv_place(seq, min(first, last / STEP * STEP));
        Words4 k = Words4(kv_head(at.k, headKV, KEY)), v = Words4(kv_head(at.v, headKV, VAL));
        if (first > 0) {
            barrier();
            [[unroll]] for (uint i = 0; i < K_VECS; i++) {
                uint j = lane + i * LANES;
                if (j < STEP * KEY / 8)
                    mem[K_AT + j / (KEY / 8) * K_STRIDE + j % (KEY / 8)] = rk[i];
            }
            [[unroll]] for (uint i = 0; i < V_VECS; i++) {
                uint j = lane + i * LANES;
                if (j < STEP * VAL / 8) // memory past the last position may hold NaN, which times 0 is NaN
                    mem[V_AT + j / (VAL / 8) * V_STRIDE + j % (VAL / 8)] = now + j / (VAL / 8) <= last ? rv[i] : uvec4(0);
            }
            barrier();
        }
        [[unroll]] for (uint i = 0; i < K_VECS; i++)
            if (lane + i * LANES < STEP * KEY / 8)
                rk[i] = k.w[lane + i * LANES];
        [[unroll]] for (uint i = 0; i < V_VECS; i++)
            if (lane + i * LANES < STEP * VAL / 8)
                rv[i] = v.w[lane + i * LANES];
        if (first == 0)
            continue;

        [[unroll]] for (uint t = 0; t < STEP / T; t++) {
            coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator> s = coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator>(0.0);
            [[unroll]] for (uint d = 0; d < KEY / T; d++) {
                coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB> key;
                coopMatLoad(key, mem, K_AT + t * T * K_STRIDE + d * T / 8, K_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                s = coopMatMulAdd(q[d], key, s);
            }
            coopMatStore(s, mem, sAt + t * T / 4, S_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        }
        subgroupBarrier();
        float score[WIDTH];
        float high = NONE;
        [[unroll]] for (uint i = 0; i < WIDTH; i += 4) {
            vec4 four = uintBitsToFloat(mem[sAt + row * S_STRIDE + (part * WIDTH + i) / 4]);
            [[unroll]] for (uint c = 0; c < 4; c++) {
                score[i + c] = now + part * WIDTH + i + c <= pos ? four[c] : NONE;
                high = max(high, score[i + c]);
            }
        }
        [[unroll]] for (uint x = 1; x < PARTS; x *= 2)
            high = max(high, subgroupShuffleXor(high, x));
        bool rises = high > top + SLACK;
        if (subgroupAny(rises)) {
            float fade = 1;
            if (rises) {
                fade = exp2(max(top - high, -200));
                top = high;
            }
            total *= fade;
            [[unroll]] for (uint c = part; c < F_STRIDE; c += PARTS)
                mem[fAt + row * F_STRIDE + c] = floatBitsToUint(vec4(fade));
            subgroupBarrier();
            coopmat<float, gl_ScopeSubgroup, T, T, gl_MatrixUseAccumulator> fades;
            coopMatLoad(fades, mem, fAt, F_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint d = 0; d < VAL / T; d++)
                o[d] = o[d] * fades;
        }
        [[unroll]] for (uint i = 0; i < WIDTH; i += 8) {
            vec4 lo, hi;
            [[unroll]] for (uint c = 0; c < 4; c++) {
                lo[c] = exp2(max(score[i + c] - top, -200));
                hi[c] = exp2(max(score[i + 4 + c] - top, -200));
                total += lo[c] + hi[c];
            }
            mem[pAt + row * P_STRIDE + (part * WIDTH + i) / 8] = halves(lo, hi);
        }
        subgroupBarrier();
        [[unroll]] for (uint t = 0; t < STEP / T; t++) {
            coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseA> p;
            coopMatLoad(p, mem, pAt + t * T / 8, P_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint d = 0; d < VAL / T; d++) {
                coopmat<float16_t, gl_ScopeSubgroup, T, T, gl_MatrixUseB> value;
                coopMatLoad(value, mem, V_AT + t * T * V_STRIDE + d * T / 8, V_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
                o[d] = coopMatMulAdd(p, value, o[d]);
            }
        }
        now += STEP;
    }

    [[unroll]] for (uint x = 1; x < PARTS; x *= 2)
        total += subgroupShuffleXor(total, x);
    precise float share = 1 / total;
    barrier();
    uint outAt = sub * T * OUT_STRIDE;
    [[unroll]] for (uint d0 = 0; d0 < VAL / T; d0 += OUT) {
        [[unroll]] for (uint d = d0; d < min(d0 + OUT, VAL / T); d++)
            coopMatStore(o[d], mem, outAt + (d - d0) * T / 4, OUT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        uint r = row0 + sub * T + row;
        Floats dst = Floats(advance(advance(a.Dst, min(r, a.Rows - 1), a.DstStride * 4), head, a.ValLen * 4));
        if (r < a.Rows)
            for (uint c = part; c < OUT * T / 4 && d0 * T + 4 * c < VAL; c += PARTS) {
                precise vec4 y = uintBitsToFloat(mem[outAt + row * OUT_STRIDE + c]) * share;
                [[unroll]] for (uint i = 0; i < 4; i++)
                    dst.f[d0 * T + 4 * c + i] = y[i];
            }
        subgroupBarrier();
    }
}
