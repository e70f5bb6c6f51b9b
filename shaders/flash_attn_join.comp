#version 460
// flash_attn_join: Dst (Rows, Heads, ValLen) of the parts that flash_attn_split has left, and, where Q is not 0, the same as
// bytes. One workgroup per row and head. For devices where flash_attn_split cannot do it itself.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Parts, Pos, Dst, Q, S, Sinks;
    uint Rows, Heads, ValLen, MaxParts, DstStride, Window;
} a;

#include "attn_window.glsl"
#include "attn_parts.glsl"
const uint Q8_LANES = LANES, HEADS = 1;
#include "attn_join.glsl"

void main()
{
    if (group() >= a.Rows * a.Heads)
        return;
    uint row = group() / a.Heads, head = group() % a.Heads;
    uint pos = Words(a.Pos).w[row];
    join(row, head, parts_of(pos + 1 - parts_begin(first_seen(pos))), a.Dst, a.Q, a.S);
}
