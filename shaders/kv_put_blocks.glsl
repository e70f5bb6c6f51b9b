// How values get into a KV cache of blocks: a lane has 4 values of a row, 16 lanes two blocks. The numbers are ggml's, but
// for ties: a driver's quotient may be off by a bit, so products decide. A block with NaN or an infinity has the scale NaN, and zeros.
#include "finite.glsl"

shared float most[LANES];  // the farthest from 0 of a lane's values
shared uint packed[LANES]; // its quants, a byte each

// row_lanes is how many lanes have a row of len values; those behind its end have none.
uint row_lanes(uint len) { return (len + 63) / 64 * 16; }

float farther(float x, float y) { return magnitude(y) > magnitude(x) ? y : x; } // the first of equals

float most_of_block(uint first)
{
    float high = 0;
    for (uint i = 0; i < 8; i++)
        high = farther(high, most[first + i]);
    return high;
}

float scale_of(float high)
{
#ifdef TYPE_Q8_0
    precise float d = abs(high) * 0.0078740157; // 1/127
#else
    precise float d = high * -0.125;
#endif
    return d;
}

// scale_bits is the scale as F16. Above its range that is infinity, and so is what comes of the block, or NaN.
uint scale_bits(float high) { return magnitude(high) < INFINITY ? half_bits(scale_of(high)) : 0x7e00; }

uint quant(float x, float high)
{
    float size = magnitude(high) < INFINITY ? abs(high) : 0;
#ifdef TYPE_Q8_0
    // The greatest n with (n - 0.5) * size <= |x| * 127, with x's sign.
    if (size == 0)
        return 0;
    precise float y = abs(x) * 127.0;
    float n = floor(clamp(y / size + 0.5, 0.0, 127.0));
    precise float above = (n + 0.5) * size, below = (n - 0.5) * size;
    int q = min(int(n) + (above <= y ? 1 : 0) - (below > y ? 1 : 0), 127);
    return uint(x < 0 ? -q : q) & 0xff;
#else
    // The greatest n with (n - 8.5) * |d| <= x, counted from the side of the block's farthest.
    precise float d = size * 0.125;
    if (d == 0)
        return 8;
    float y = high < 0 ? x : -x;
    float n = floor(clamp(y / d + 8.5, 0.0, 15.0));
    precise float above = (n - 7.5) * d, below = (n - 8.5) * d;
    return uint(clamp(int(n) + (above <= y ? 1 : 0) - (below > y ? 1 : 0), 0, 15));
#endif
}

// put_blocks stores values 4t … 4t+3 of a row. All lanes of the workgroup come here together; those that are not
// `there` have nothing to store.
void put_blocks(vec4 x, bool there, uvec2 row, uvec2 scales, uint t)
{
    uint lane = gl_LocalInvocationID.x, first = lane & ~7u;
    most[lane] = there ? farther(farther(farther(x.x, x.y), x.z), x.w) : 0;
    barrier();
    float high = most_of_block(first);
    uint quants = quant(x.x, high) | quant(x.y, high) << 8 | quant(x.z, high) << 16 | quant(x.w, high) << 24;
    if (there && t % 16 == 0)
        OutWords(scales).w[t / 16] = scale_bits(high) | scale_bits(most_of_block(first + 8)) << 16;
#ifdef TYPE_Q8_0
    if (there)
        OutWords(row).w[t] = quants;
#else
    packed[lane] = quants;
    barrier();
    if (there && t % 2 == 0)
        OutWords(row).w[t / 2] = packed[lane] | packed[lane + 1] << 4;
#endif
}
