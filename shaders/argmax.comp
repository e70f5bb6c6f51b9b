#version 460
// argmax: column of the greatest value of each row, or where a row holds NaN or an infinity the first such column, inverted. One
// workgroup per row; JOINED: one per PART columns, and the last to end of a row puts together what they found. Floats are compared as
// integers: no driver can optimise a NaN test away, and no subnormal is flushed.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Dst, Parts, Counters;
    uint Rows, Cols;
} a;

shared uint keys[LANES];
shared uint columns[LANES];

const uint BROKEN = 0xffffffff;

// order maps floats to integers above 0 of the same order; NaN and infinities to BROKEN, above all; -0 to what 0 maps to.
uint order(uint u)
{
    if ((u & 0x7f800000) == 0x7f800000)
        return BROKEN;
    if ((u & 0x80000000u) == 0 || u == 0x80000000u)
        return u | 0x80000000u;
    return ~u;
}

// fold makes key and column, the lane's own, the best of each step-th of the n lanes from its own on: the lowest column among equals.
void fold(inout uint key, inout uint column, uint step, uint n)
{
    [[unroll]] for (uint i = step; i < n; i += step) {
        uint k = keys[gl_LocalInvocationID.x + i], c = columns[gl_LocalInvocationID.x + i];
        bool better = k > key || k == key && c < column;
        key = better ? k : key;
        column = better ? c : column;
    }
}

const uint FIRST = 8; // lanes that fold all others'

// meet gives the first lane the column, and the key, of the best of what the lanes have. Barriers cost more than loads of shared memory.
uint meet(inout uint key, uint column)
{
    uint lane = gl_LocalInvocationID.x;
    keys[lane] = key;
    columns[lane] = column;
    barrier();
    if (lane < FIRST) {
        fold(key, column, FIRST, LANES);
        keys[lane] = key;
        columns[lane] = column;
    }
    barrier();
    if (lane == 0)
        fold(key, column, 1, FIRST);
    return column;
}

#ifdef JOINED
const uint AHEAD = PART / (4 * LANES); // 16-byte loads that a lane has under way
const uint LEAST = 0xff7fffff; // the least number: what is behind a row is not before any of it

layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer Left { uvec2 w[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counts { uint n[]; };
shared uint ended; // workgroups of the row before this one

// quad is words at … at+3 of a row that ends at `end`; what is behind is LEAST.
uvec4 quad(uvec2 x, uint at, uint end)
{
    if (at + 4 <= end)
        return Words4(x).w[at / 4];
    uvec4 v = uvec4(LEAST);
    [[unroll]] for (uint k = 0; k < 3; k++)
        if (at + k < end)
            v[k] = Words(x).w[at + k];
    return v;
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint parts = (a.Cols + 3 + PART - 1) / PART, row = group() / parts, part = group() % parts;
    if (row >= a.Rows)
        return;
    // The row is words from `skew` on of memory that begins on 16 bytes: what is before is of other rows.
    uvec2 x = advance(a.X, row, a.Cols * 4);
    uint skew = x.x % 16 / 4;
    x.x &= ~15u;
    uint first = part * PART + 4 * lane, end = skew + a.Cols;
    uvec4 v[AHEAD];
    if (part * PART + PART <= end) // the same for all lanes: whole parts have no branches
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            v[u] = Words4(x).w[first / 4 + u * LANES];
    else
        [[unroll]] for (uint u = 0; u < AHEAD; u++)
            v[u] = quad(x, first + 4 * u * LANES, end);
    uint key = 0, column = 0;
    [[unroll]] for (uint u = 0; u < AHEAD; u++)
        [[unroll]] for (uint i = 0; i < 4; i++) {
            uint at = first + 4 * u * LANES + i, k = at < skew ? 0 : order(v[u][i]);
            column = k > key ? at - skew : column;
            key = max(key, k);
        }
    column = meet(key, column);
    if (parts > 1) {
        if (lane == 0) {
            Left(a.Parts).w[row * parts + part] = uvec2(key, column);
            memoryBarrierBuffer();
            ended = atomicAdd(Counts(a.Counters).n[row], 1);
            if (ended == parts - 1)
                Counts(a.Counters).n[row] = 0; // for the next dispatch
        }
        barrier();
        if (ended != parts - 1)
            return;
        memoryBarrierBuffer();
        key = 0, column = 0;
        for (uint p = lane; p < parts; p += LANES) {
            uvec2 best = Left(a.Parts).w[row * parts + p];
            if (best.x > key) {
                key = best.x;
                column = best.y;
            }
        }
        column = meet(key, column);
    }
    if (lane == 0)
        OutWords(a.Dst).w[row] = key == BROKEN ? ~column : column;
}
#else
void main()
{
    uint row = group();
    if (row >= a.Rows)
        return;
    Words x = Words(advance(a.X, row, a.Cols * 4));
    uint key = 0, column = 0;
    for (uint i = gl_LocalInvocationID.x; i < a.Cols; i += LANES) {
        uint k = order(x.w[i]);
        if (k > key) {
            key = k;
            column = i;
        }
    }
    column = meet(key, column);
    if (gl_LocalInvocationID.x == 0)
        OutWords(a.Dst).w[row] = key == BROKEN ? ~column : column;
}
#endif
