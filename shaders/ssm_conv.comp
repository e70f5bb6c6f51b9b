#version 460
// ssm_conv: a short convolution of each column over the rows of its sequence, perhaps a bias, then silu unless it is Linear. One lane per column of a
// sequence, which keeps the last rows' values in registers.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "silu.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, W, B, Dst, States, Seq, Pos;
    uint Rows, Cols, Taps, XStride, DstStride, Sequences, StateOff, Linear;
} a;

void main()
{
    uint seq = item() / a.Cols, col = item() % a.Cols;
    if (seq >= a.Sequences)
        return;
    Floats from = Floats(advance(Words2(a.States).w[2 * seq], 1, a.StateOff));
    Floats to = Floats(advance(Words2(a.States).w[2 * seq + 1], 1, a.StateOff));
    float w[MAX_TAPS], last[MAX_TAPS]; // the own row's in front
    [[unroll]] for (uint t = 0; t < MAX_TAPS; t++) {
        w[t] = t < a.Taps ? Floats(a.W).f[col * a.Taps + a.Taps - 1 - t] : 0;
        last[t] = 0;
    }
    bool biased = (a.B.x | a.B.y) != 0, begun = false;
    float bias = biased ? Floats(a.B).f[col] : 0;
    for (uint row = 0; row < a.Rows; row++) {
        if (Words(a.Seq).w[row] != seq)
            continue;
        if (!begun && Words(a.Pos).w[row] > 0) {
            [[unroll]] for (uint t = 0; t < MAX_TAPS - 1; t++)
                if (t < a.Taps - 1)
                    last[t] = from.f[(a.Taps - 2 - t) * a.Cols + col];
        }
        begun = true;
        [[unroll]] for (uint t = MAX_TAPS - 1; t > 0; t--)
            last[t] = last[t - 1];
        last[0] = Floats(advance(a.X, row, a.XStride * 4)).f[col];
        precise float sum = 0;
        [[unroll]] for (uint t = MAX_TAPS; t > 0; t--)
            sum = fma(last[t - 1], w[t - 1], sum);
        if (biased)
            sum += bias;
        Floats(advance(a.Dst, row, a.DstStride * 4)).f[col] = a.Linear != 0 ? sum : act(sum);
    }
    if (!begun)
        return;
    [[unroll]] for (uint t = 0; t < MAX_TAPS - 1; t++)
        if (t < a.Taps - 1)
            to.f[(a.Taps - 2 - t) * a.Cols + col] = last[t];
}
