// Blocks of 32 signed bytes with a scale and two sums, as mul_mat_vec_int8 reads them. The includer says how many lanes
// a workgroup has: Q8_LANES. A block with NaN or an infinity has the scale NaN, so that none of it comes out as a number.
#include "finite.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords2 { uvec2 w[]; };

shared uint q8_largest[Q8_LANES]; // magnitudes
shared int q8_sums[Q8_LANES];

uint q8_top(vec4 x) { return max(max(magnitude(x.x), magnitude(x.y)), max(magnitude(x.z), magnitude(x.w))); }

// q8_round makes bytes of 4 values of a block whose largest magnitude is top, and its scale's bits.
ivec4 q8_round(vec4 x, uint top, out uint scale)
{
    precise float d = uintBitsToFloat(top) / 127.0;
    scale = top < INFINITY ? floatBitsToUint(d) : NAN;
    // Clamped: a device may round the division so that the largest comes out a little above 127.
    precise vec4 scaled = d > 0 && top < INFINITY ? x / d : vec4(0);
    return ivec4(clamp(roundEven(scaled), -127.0, 127.0));
}

// put_q8 stores a block of 32 values, of which 8 neighbouring lanes have 4 each. All lanes of the workgroup call it;
// where a block is not there, its lanes store nothing.
void put_q8(vec4 x, bool there, uvec2 q, uvec2 s, uint block)
{
    uint lane = gl_LocalInvocationID.x;
    q8_largest[lane] = q8_top(x);
    barrier();
    uint top = 0, scale;
    [[unroll]] for (uint i = 0; i < 8; i++)
        top = max(top, q8_largest[lane / 8 * 8 + i]);
    ivec4 b = q8_round(x, top, scale);
    q8_sums[lane] = b.x + b.y + b.z + b.w;
    barrier();
    if (!there)
        return;
    OutWords(advance(q, block, 32)).w[lane % 8] = (uint(b.x) & 0xff) | (uint(b.y) & 0xff) << 8 | (uint(b.z) & 0xff) << 16 | uint(b.w) << 24;
    if (lane % 8 == 0) {
        int first = q8_sums[lane] + q8_sums[lane + 1] + q8_sums[lane + 2] + q8_sums[lane + 3];
        int second = q8_sums[lane + 4] + q8_sums[lane + 5] + q8_sums[lane + 6] + q8_sums[lane + 7];
        OutWords2(s).w[block] = uvec2(scale, (uint(first) & 0xffff) | uint(second) << 16);
    }
}

#ifdef Q8_WITHIN
// put_q8_within is put_q8 where 8 neighbouring lanes are of one subgroup: to the same bits, and none waits for others.
void put_q8_within(vec4 x, bool there, uvec2 q, uvec2 s, uint block)
{
    uint top = q8_top(x), scale;
    [[unroll]] for (uint i = 1; i < 8; i *= 2)
        top = max(top, subgroupShuffleXor(top, i));
    ivec4 b = q8_round(x, top, scale);
    int first = b.x + b.y + b.z + b.w; // of 16 values in the end
    first += subgroupShuffleXor(first, 1);
    first += subgroupShuffleXor(first, 2);
    int second = subgroupShuffleXor(first, 4);
    if (!there)
        return;
    uint lane = gl_SubgroupInvocationID % 8;
    OutWords(advance(q, block, 32)).w[lane] = (uint(b.x) & 0xff) | (uint(b.y) & 0xff) << 8 | (uint(b.z) & 0xff) << 16 | uint(b.w) << 24;
    if (lane == 0)
        OutWords2(s).w[block] = uvec2(scale, (uint(first) & 0xffff) | uint(second) << 16);
}
#endif
