// What kernels need of a type, made from its one reader in weight_types.glsl: with OF_BYTES dot_chunk and parts, see int8_types.glsl and
// half_types.glsl, else dequant8, see weights.glsl.

#include "weight_types.glsl"

#ifdef IN_ORDER
uint first_of(uint i) { return i * 32; }
uint second_of(uint i) { return i * 32 + 16; }
uint chunk_of(uint k) { return k / 32; }
uint run_of(uint k) { return k / 16 % 2; }
#endif

#ifdef ZERO
#ifdef OF_BYTES
float dot_chunk(Chunk c, uint i, X16 x1, X16 x2)
{
    float s1, s2;
    int sum1 = dot16(run(c, i, 0, s1), x1.q) - ZERO * x1.sum, sum2 = dot16(run(c, i, 1, s2), x2.q) - ZERO * x2.sum;
    return s1 * x1.d * float(sum1) + s2 * x2.d * float(sum2);
}

void parts(Chunk c, uint i, out uvec4 q1, out uvec4 q2, out vec2 s1, out vec2 s2)
{
    float a, b;
    q1 = run(c, i, 0, a);
    q2 = run(c, i, 1, b);
#if ZERO == 0 // the bytes have signs
    q1 ^= 0x80808080u;
    q2 ^= 0x80808080u;
    s1 = a * vec2(1, -128);
    s2 = b * vec2(1, -128);
#else
    s1 = a * vec2(1, -ZERO);
    s2 = b * vec2(1, -ZERO);
#endif
}
#else
// run_at gives the bytes and the scale of the run that holds value k of a row.
uvec4 run_at(Row r, uint k, out float s) { return run(load_chunk(r, chunk_of(k)), chunk_of(k), run_of(k), s); }

void eight_of(uvec2 q, float s, out float v[8])
{
    [[unroll]] for (uint i = 0; i < 8; i++) {
        precise float y = float(sbyte_of(q[i >> 2], i & 3) - ZERO) * s; // not b * s - ZERO * s: zero has a sign
        v[i] = y;
    }
}

void dequant8(Row r, uint k, out float v[8])
{
    float s;
    uvec4 b = run_at(r, k, s);
    eight_of(k % 16 == 0 ? b.xy : b.zw, s, v);
}
#endif
#endif
