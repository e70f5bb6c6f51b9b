// An rms_norm_q8 of one row within the workgroup that multiplies its output: to the same bits, so NORM_LANES lanes of that are
// stood for by LANES of this, which are fewer and a part of them.

const bool NORM_INSIDE = NORM_LANES > 0;
const uint NORM_ROOM = NORM_INSIDE ? TEAM * UNROLL : 1; // 64 values each
const uint NORM_WAYS = NORM_INSIDE ? NORM_LANES / LANES : 1;
const uint NORM_PER = NORM_INSIDE ? (NORM_ROOM * 16 + NORM_LANES - 1) / NORM_LANES : 1;

shared uvec4 norm_bytes[NORM_ROOM * 4];
shared uvec2 norm_scales[NORM_ROOM * 2];
shared float norm_part[NORM_INSIDE ? NORM_LANES / 4 : 1];

vec4 norm_in(uvec2 from, uint way, uint u)
{
    uint i = u * NORM_LANES + way * LANES + lane;
    return i < a.K / 4 ? Floats4(from).f[i] : vec4(0);
}

void norm_x()
{
    [[unroll]] for (uint way = 0; way < NORM_WAYS; way++) {
        precise float squares = 0;
        [[unroll]] for (uint u = 0; u < NORM_PER; u++) {
            vec4 v = norm_in(a.X, way, u);
            squares += dot(v, v);
        }
        float sum = sum_within(squares, gl_SubgroupSize);
        if (gl_SubgroupInvocationID == 0)
            norm_part[way * gl_NumSubgroups + gl_SubgroupID] = sum;
    }
    barrier();
    float all = 0;
    for (uint i = 0; i < NORM_LANES / gl_SubgroupSize; i++)
        all += norm_part[i];
    precise float scale = 1.0 / sqrt(all / float(a.K) + uintBitsToFloat(a.ResidualStride));
    [[unroll]] for (uint way = 0; way < NORM_WAYS; way++)
        [[unroll]] for (uint u = 0; u < NORM_PER; u++) {
            precise vec4 y = norm_in(a.X, way, u) * scale * norm_in(a.S, way, u);
            uint bytes, i = u * NORM_LANES + way * LANES + lane;
            uvec2 s;
            q8_within(y, bytes, s);
            if (i >= a.K / 4)
                continue;
            norm_bytes[i / 4][i % 4] = bytes;
            if (i % 8 == 0)
                norm_scales[i / 8] = s;
        }
    barrier();
}
