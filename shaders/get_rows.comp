#version 460
// get_rows: Dst (Rows, Cols) = rows IDs of Table, dequantised. One lane per run of 8 values.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Table, IDs, Dst, Grids;
    uint Rows, Cols;
} a;

#include "weights.glsl"

void main()
{
    uint runs = (a.Cols + 7) / 8;
    uint row = item() / runs, k = item() % runs * 8;
    if (row >= a.Rows)
        return;
    Row r = weight_row(a.Table, Words(a.IDs).w[row], a.Cols);
    Floats dst = Floats(advance(a.Dst, row, a.Cols * 4));
#ifdef TAIL
    if (k + 8 > a.Cols) {
        for (; k < a.Cols; k++)
            dst.f[k] = value_at(r, k);
        return;
    }
#endif
    float v[8];
    dequant8(r, k, v);
    [[unroll]] for (uint i = 0; i < 8; i++)
        dst.f[k + i] = v[i];
}
