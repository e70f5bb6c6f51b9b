#version 460
// flash_attn_join: Dst (Rows, Heads, ValLen) of the parts that flash_attn_split has left, and, where Q is not 0, the same as
// bytes. One workgroup per row and head. For devices where flash_attn_split cannot do it itself.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Parts, Seen, Dst, Q, S, Sinks;
    uint Rows, Heads, ValLen, MaxParts, DstStride, pad0;
} a;

#include "attn_seen.glsl"
#include "attn_parts.glsl"
const uint Q8_LANES = LANES, HEADS = 1;
#include "attn_join.glsl"

void main()
{
    if (group() >= a.Rows * a.Heads)
        return;
    uint row = group() / a.Heads, head = group() % a.Heads;
    join(row, head, parts_of(last_seen(row) + 1 - parts_begin(first_seen(row))), a.Dst, a.Q, a.S, a.Sinks);
}
