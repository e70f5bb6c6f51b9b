#version 460
// logits: X (Rows, Cols) = Scale * X + B in place, B for each row or none, then with a Cap: Cap * tanh(X / Cap). One lane per value.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "fine_math.glsl"
#include "finite.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, B;
    uint Rows, Cols, Stride;
    float Scale, Cap;
    uint pad0;
} a;

void main()
{
    uint row = item() / a.Cols, i = item() % a.Cols;
    if (row >= a.Rows)
        return;
    Floats x = Floats(advance(a.X, row, a.Stride * 4));
    precise float y = a.Scale * x.f[i];
    if ((a.B.x | a.B.y) != 0)
        y += Floats(a.B).f[i];
    if (a.Cap > 0.0 && magnitude(y) < INFINITY) { // the cap would hide that a logit is not finite
        precise float z = y / a.Cap;
        y = a.Cap * fine_tanh(z);
    }
    x.f[i] = y;
}
