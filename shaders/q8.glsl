// Blocks of 32 signed bytes with a scale and two sums, as mul_mat_vec_int8 reads them. The includer says how many lanes
// a workgroup has: Q8_LANES.

layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords2 { uvec2 w[]; };

shared float q8_largest[Q8_LANES];
shared int q8_sums[Q8_LANES];

// put_q8 stores a block of 32 values, of which 8 neighbouring lanes have 4 each. All lanes of the workgroup call it;
// where a block is not there, its lanes store nothing.
void put_q8(vec4 x, bool there, uvec2 q, uvec2 s, uint block)
{
    uint lane = gl_LocalInvocationID.x;
    q8_largest[lane] = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
    barrier();
    float top = 0;
    [[unroll]] for (uint i = 0; i < 8; i++)
        top = max(top, q8_largest[lane / 8 * 8 + i]);
    precise float d = top / 127.0;
    // Clamped: a device may round the division so that the largest comes out a little above 127.
    precise vec4 scaled = d > 0 ? x / d : vec4(0);
    ivec4 b = ivec4(clamp(roundEven(scaled), -127.0, 127.0));
    q8_sums[lane] = b.x + b.y + b.z + b.w;
    barrier();
    if (!there)
        return;
    OutWords(advance(q, block, 32)).w[lane % 8] = (uint(b.x) & 0xff) | (uint(b.y) & 0xff) << 8 | (uint(b.z) & 0xff) << 16 | uint(b.w) << 24;
    if (lane % 8 == 0) {
        int first = q8_sums[lane] + q8_sums[lane + 1] + q8_sums[lane + 2] + q8_sums[lane + 3];
        int second = q8_sums[lane + 4] + q8_sums[lane + 5] + q8_sums[lane + 6] + q8_sums[lane + 7];
        OutWords2(s).w[block] = uvec2(floatBitsToUint(d), (uint(first) & 0xffff) | uint(second) << 16);
    }
}

#ifdef Q8_WITHIN
// put_q8_within is put_q8 where 8 neighbouring lanes are of one subgroup: to the same bits, and none waits for others.
void put_q8_within(vec4 x, bool there, uvec2 q, uvec2 s, uint block)
{
    float top = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
    [[unroll]] for (uint i = 1; i < 8; i *= 2)
        top = max(top, subgroupShuffleXor(top, i));
    precise float d = top / 127.0;
    precise vec4 scaled = d > 0 ? x / d : vec4(0);
    ivec4 b = ivec4(clamp(roundEven(scaled), -127.0, 127.0));
    int first = b.x + b.y + b.z + b.w; // of 16 values in the end
    first += subgroupShuffleXor(first, 1);
    first += subgroupShuffleXor(first, 2);
    int second = subgroupShuffleXor(first, 4);
    if (!there)
        return;
    uint lane = gl_SubgroupInvocationID % 8;
    OutWords(advance(q, block, 32)).w[lane] = (uint(b.x) & 0xff) | (uint(b.y) & 0xff) << 8 | (uint(b.z) & 0xff) << 16 | uint(b.w) << 24;
    if (lane == 0)
        OutWords2(s).w[block] = uvec2(floatBitsToUint(d), (uint(first) & 0xffff) | uint(second) << 16);
}
#endif
