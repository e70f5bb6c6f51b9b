#version 460
// add_rows: Dst (Rows, Cols) += rows IDs of Table, which is of floats: learned positions. One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "weights.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Table, IDs, Dst;
    uint Rows, Cols;
} a;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Rows)
        return;
    Row r = weight_row(a.Table, Words(a.IDs).w[row], a.Cols);
    Floats dst = Floats(advance(a.Dst, row, a.Cols * 4));
    precise float y = dst.f[i] + value_at(r, i);
    dst.f[i] = y;
}
