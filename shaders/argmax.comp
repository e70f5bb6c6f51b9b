#version 460
// argmax: column of the greatest value of each row. One workgroup per row. Floats are compared as
// integers: no driver can optimise a NaN test away, and no subnormal is flushed.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst;
    uint Rows, Cols;
} a;

shared uint keys[LANES];
shared uint columns[LANES];

// order maps floats to integers of the same order; NaN to 0, below -infinity; -0 to what 0 maps to.
uint order(uint u)
{
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0;
    if ((u & 0x80000000u) == 0 || u == 0x80000000u)
        return u | 0x80000000u;
    return ~u;
}

void main()
{
    uint row = group();
    if (row >= a.Rows)
        return;
    uint lane = gl_LocalInvocationID.x;
    Words x = Words(advance(a.X, row, a.Cols * 4));
    uint key = 0, column = lane < a.Cols ? lane : 0;
    for (uint i = lane; i < a.Cols; i += LANES) {
        uint k = order(x.w[i]);
        if (k > key) {
            key = k;
            column = i;
        }
    }
    keys[lane] = key;
    columns[lane] = column;
    barrier();
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        if (lane < s) {
            uint k = keys[lane + s], c = columns[lane + s];
            if (k > keys[lane] || (k == keys[lane] && c < columns[lane])) {
                keys[lane] = k;
                columns[lane] = c;
            }
        }
        barrier();
    }
    if (lane == 0)
        OutWords(a.Dst).w[row] = columns[0];
}
