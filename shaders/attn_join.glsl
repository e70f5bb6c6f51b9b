// The joining of the parts of HEADS heads, by all lanes of a workgroup: a lane has 4 values of a head, and adds them up in the
// order of the parts, of which it asks for 8 at once, the first ones before the scores are known. The includer has Q8_LANES of LANES.
#include "q8.glsl"

shared vec2 joined[HEADS * MAX_PARTS]; // of each head's parts the largest score and the sum of the weights

uvec2 join_at(uvec2 dst, uint row, uint head) { return advance(advance(dst, row, a.DstStride * 4), head, a.ValLen * 4); }

// join stores heads from head0 on of the row (Heads, ValLen) of dst, and where q is not 0 as bytes too. sinks, where not 0, are scores of heads without a value.
void join(uint row, uint head0, uint count, uvec2 dst, uvec2 q, uvec2 s, uvec2 sinks)
{
    uint lane = gl_LocalInvocationID.x, quads = a.ValLen / 4;
    for (uint i = lane; i < HEADS * count; i += LANES) {
        Left of = Left(part_stats(part_index(row, head0 + i / count, i % count)));
        joined[i / count * MAX_PARTS + i % count] = vec2(of.f[0], of.f[1]);
    }
    bool sunk = (sinks.x | sinks.y) != 0;
    for (uint first = 0; first < HEADS * quads; first += LANES) {
        bool there = first + lane < HEADS * quads;
        uint h = there ? (first + lane) / quads : 0, quad = there ? (first + lane) % quads : 0;
        uint index = part_index(row, head0 + h, 0), of = h * MAX_PARTS;
        vec4 v[8];
#define EACH_PART(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define ASK(u) \
            v[u] = vec4(0); \
            if (there && p + u < count) \
                v[u] = Left4(part_values(index + p + u)).f[quad];
        uint p = 0;
        EACH_PART(ASK)
        if (first == 0)
            barrier(); // joined is there
        float sink = sunk ? Floats(sinks).f[head0 + h] : NONE, top = sink;
        for (uint i = 0; i < count; i++)
            top = max(top, joined[of + i].x);
        vec4 y = vec4(0);
        float whole = sunk ? exp(sink - top) : 0; // a score without a value
        for (;;) {
#define PUT(u) \
            if (p + u < count) { \
                float w = exp(joined[of + p + u].x - top); \
                y += w * v[u]; \
                whole += w * joined[of + p + u].y; \
            }
            EACH_PART(PUT)
            if ((p += 8) >= count)
                break;
            EACH_PART(ASK)
        }
        y /= whole;
        if (there)
            [[unroll]] for (uint k = 0; k < 4; k++)
                Floats(join_at(dst, row, head0 + h)).f[4 * quad + k] = y[k];
        if ((q.x | q.y) != 0)
            put_q8(y, there, q, s, (row * a.Heads + head0 + h) * quads / 8 + quad / 8);
    }
}
