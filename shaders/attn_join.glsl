// The joining of the parts of HEADS heads, by all lanes of a workgroup: a lane has 4 values of every LANES / (ValLen / 4)-th
// part. All heads' loads are under way at once. The includer has `shared float parts[]` of LANES * 5 and more, Q8_LANES of LANES.
#include "q8.glsl"

uvec2 join_at(uvec2 dst, uint row, uint head) { return advance(advance(dst, row, a.DstStride * 4), head, a.ValLen * 4); }

// join stores heads from head0 on of the row (Heads, ValLen) of dst, and where q is not 0 as bytes too.
void join(uint row, uint head0, uint count, uvec2 dst, uvec2 q, uvec2 s)
{
    uint lane = gl_LocalInvocationID.x;
    uint quads = a.ValLen / 4, across = LANES / quads; // parts at a time
    uint quad = lane % quads, p0 = lane / quads;
    float top[HEADS], weight[HEADS];
    vec4 v[HEADS];
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        top[h] = NONE;
        weight[h] = 0;
        v[h] = vec4(0);
    }
    for (uint p = 0; p < count; p++)
        [[unroll]] for (uint h = 0; h < HEADS; h++)
            top[h] = max(top[h], Left(part_stats(part_index(row, head0 + h, p))).f[0]);
    bool sinks = (a.Sinks.x | a.Sinks.y) != 0;
    float sink[HEADS];
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        sink[h] = sinks ? Floats(a.Sinks).f[head0 + h] : NONE;
        top[h] = max(top[h], sink[h]);
    }
    for (uint p = p0; p0 < across && p < count; p += across)
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            uint index = part_index(row, head0 + h, p);
            float w = exp(Left(part_stats(index)).f[0] - top[h]);
            v[h] += w * Left4(part_values(index)).f[quad];
            weight[h] += w * Left(part_stats(index)).f[1];
        }
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        barrier(); // the head before is stored
        [[unroll]] for (uint k = 0; k < 4; k++)
            parts[4 * lane + k] = v[h][k];
        parts[4 * LANES + lane] = weight[h];
        barrier();
        vec4 y = vec4(0);
        float whole = 0;
        for (uint i = 0; i < across; i++) {
            uint at = i * quads + quad;
            y += vec4(parts[4 * at], parts[4 * at + 1], parts[4 * at + 2], parts[4 * at + 3]);
            whole += parts[4 * LANES + at];
        }
        if (sinks) // a score without a value
            whole += exp(sink[h] - top[h]);
        y /= whole;
        bool there = lane < quads;
        if (there)
            [[unroll]] for (uint k = 0; k < 4; k++)
                Floats(join_at(dst, row, head0 + h)).f[4 * quad + k] = y[k];
        if ((q.x | q.y) != 0)
            put_q8(y, there, q, s, (row * a.Heads + head0 + h) * quads / 8 + quad / 8);
    }
}
