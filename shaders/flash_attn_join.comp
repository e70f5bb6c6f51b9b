#version 460
// flash_attn_join: Dst (Rows, Heads, ValLen) of the parts that flash_attn_split has left, and, where Q is not 0, the same as
// bytes. One workgroup per row and head: a lane has 4 values of every LANES / (ValLen / 4)-th part.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Parts, Pos, Dst, Q, S, Sinks;
    uint Rows, Heads, ValLen, MaxParts, DstStride, Window;
} a;

#include "attn_window.glsl"
#include "attn_parts.glsl"
const uint Q8_LANES = LANES;
#include "q8.glsl"

shared vec4 sums[LANES];
shared float weights[LANES];

void main()
{
    if (group() >= a.Rows * a.Heads)
        return;
    uint row = group() / a.Heads, head = group() % a.Heads;
    uint lane = gl_LocalInvocationID.x;
    uint pos = Words(a.Pos).w[row], count = pos + 1 - parts_begin(first_seen(pos));
    uint span = span_of(count), parts = (count + span - 1) / span;
    uint first = part_index(row, head, 0);
    Floats stats = Floats(part_stats(first));
    float top = NONE;
    for (uint p = 0; p < parts; p++)
        top = max(top, stats.f[2 * p]);
    bool sinks = (a.Sinks.x | a.Sinks.y) != 0;
    float sink = sinks ? Floats(a.Sinks).f[head] : NONE;
    top = max(top, sink);

    uint quads = a.ValLen / 4, across = LANES / quads; // parts at a time
    uint quad = lane % quads, p0 = lane / quads;
    vec4 v = vec4(0);
    float weight = 0;
    for (uint p = p0; p0 < across && p < parts; p += across) {
        float w = exp(stats.f[2 * p] - top);
        v += w * Floats4(part_values(first + p)).f[quad];
        weight += w * stats.f[2 * p + 1];
    }
    sums[lane] = v;
    weights[lane] = weight;
    barrier();
    v = vec4(0);
    weight = 0;
    for (uint i = 0; i < across; i++) {
        v += sums[i * quads + quad];
        weight += weights[i * quads + quad];
    }
    if (sinks) // a score without a value
        weight += exp(sink - top);
    v /= weight;
    bool there = lane < quads;
    if (there)
        [[unroll]] for (uint k = 0; k < 4; k++)
            Floats(advance(advance(a.Dst, row, a.DstStride * 4), head, a.ValLen * 4)).f[4 * quad + k] = v[k];
    if ((a.Q.x | a.Q.y) != 0)
        put_q8(v, there, a.Q, a.S, (row * a.Heads + head) * quads / 8 + quad / 8);
}
