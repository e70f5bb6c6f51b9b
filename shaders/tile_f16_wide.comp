#version 460
// tile_f16 of rows of whole runs of 4 values that LANES lanes hold in registers, PER runs each at most: what is brought into
// tiles is X itself, or made of X on the way, and written to Dst too:
//   NORM    rms_norm of X with the weights W
//   SWIGLU  silu(X) * W, W as X
//   GEGLU   gelu(X) * W
// One workgroup per row.
#extension GL_GOOGLE_include_directive : require

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "reduce.glsl"
#include "tiles.glsl"
#include "fit.glsl"

layout(constant_id = 1) const uint PER = DEFAULT_PER;

layout(push_constant, std430) uniform Args {
    uvec2 X, W, Dst, Tiles, Scales;
    uint Rows, Cols, XStride, DstStride;
    float Eps;
    uint pad0;
} a;

layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer OutFloats4 { vec4 f[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords2 { uvec2 w[]; };

#if defined(SWIGLU) || defined(GEGLU)
#define GATED
#ifdef SWIGLU
#include "silu.glsl"
#else
#include "gelu.glsl"
#endif
#endif

void put(uint row, uint i, vec4 v)
{
    OutWords2(a.Tiles).w[2 * tile_vec(row, 4 * i, a.Cols) + i % 2] = uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

void main()
{
    uint row = group();
    if (row >= a.Rows)
        return;
    uint lane = gl_LocalInvocationID.x, runs = a.Cols / 4;
    Floats4 x = Floats4(advance(a.X, row, a.XStride * 4));
    vec4 v[PER];
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = lane + u * LANES;
        v[u] = i < runs ? x.f[i] : vec4(0);
    }
#ifdef GATED
    Floats4 up = Floats4(advance(a.W, row, a.XStride * 4));
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = lane + u * LANES;
        if (i < runs) {
            vec4 w = up.f[i];
            precise vec4 y = vec4(act(v[u].x), act(v[u].y), act(v[u].z), act(v[u].w)) * w;
            v[u] = y;
        }
    }
#endif
#ifdef NORM
    precise vec4 squares = vec4(0);
    [[unroll]] for (uint u = 0; u < PER; u++)
        squares = fma(v[u], v[u], squares);
    precise float own = (squares.x + squares.y) + (squares.z + squares.w);
    precise float mean = sum_lanes(own) / float(a.Cols);
    precise float scale = 1.0 / sqrt(mean + a.Eps);
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = lane + u * LANES;
        if (i < runs) {
            precise vec4 y = v[u] * scale * Floats4(a.W).f[i];
            v[u] = y;
        }
    }
#endif
#if defined(GATED) || defined(NORM)
    OutFloats4 dst = OutFloats4(advance(a.Dst, row, a.DstStride * 4));
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = lane + u * LANES;
        if (i < runs)
            dst.f[i] = v[u];
    }
#endif
    float top = 0;
    [[unroll]] for (uint u = 0; u < PER; u++)
        top = max(top, max(max(abs(v[u].x), abs(v[u].y)), max(abs(v[u].z), abs(v[u].w))));
    top = max_lanes(top);
    float down, factor = fit(top, down);
    if (lane == 0)
        Floats(a.Scales).f[row] = down;
    [[unroll]] for (uint u = 0; u < PER; u++) {
        uint i = lane + u * LANES;
        if (i < runs) {
            precise vec4 y = v[u] * factor;
            put(row, i, y);
        }
    }
    for (uint i = runs + lane; i < padded(a.Cols) / 4; i += LANES)
        put(row, i, vec4(0));
}
