#version 460
// ssm_scan: the scan of Mamba 1: each row fades the state of each channel, adds to it, and reads it; see SSMScanArgs. A lane owns a channel, whose state it
// keeps in registers, and goes through the rows of a sequence in order.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "softplus.glsl"

layout(constant_id = 0) const uint STATE = DEFAULT_STATE;

layout(push_constant, std430) uniform Args {
    uvec2 X, Delta, BC, A, D, Dt, Dst, States, Seq, Pos;
    uint Rows, Channels, State, XStride, DeltaStride, BCStride, DstStride, Sequences, StateOff, pad0;
} a;

void main()
{
    uint seq = item() / a.Channels, c = item() % a.Channels;
    if (seq >= a.Sequences)
        return;
    Floats before = Floats(advance(Words2(a.States).w[2 * seq], 1, a.StateOff));
    Floats after = Floats(advance(Words2(a.States).w[2 * seq + 1], 1, a.StateOff));
    float rate[STATE], h[STATE];
    [[unroll]] for (uint i = 0; i < STATE; i++) {
        rate[i] = Floats(advance(a.A, c, STATE * 4)).f[i];
        h[i] = 0;
    }
    float dt = Floats(a.Dt).f[c], skip = Floats(a.D).f[c];
    bool begun = false;
    for (uint row = 0; row < a.Rows; row++) {
        if (Words(a.Seq).w[row] != seq)
            continue;
        if (!begun && Words(a.Pos).w[row] > 0) {
            [[unroll]] for (uint i = 0; i < STATE; i++)
                h[i] = before.f[i * a.Channels + c];
        }
        begun = true;
        float x = Floats(advance(a.X, row, a.XStride * 4)).f[c];
        precise float raw = Floats(advance(a.Delta, row, a.DeltaStride * 4)).f[c] + dt;
        float delta = softplus(raw);
        precise float dx = delta * x, y = 0;
        Floats bc = Floats(advance(a.BC, row, a.BCStride * 4));
        [[unroll]] for (uint i = 0; i < STATE; i++) {
            precise float at = delta * rate[i], add = dx * bc.f[i];
            h[i] = fma(h[i], fine_exp(at), add);
            y = fma(h[i], bc.f[STATE + i], y);
        }
        y = fma(x, skip, y);
        Floats(advance(a.Dst, row, a.DstStride * 4)).f[c] = y;
    }
    if (!begun)
        return;
    [[unroll]] for (uint i = 0; i < STATE; i++)
        after.f[i * a.Channels + c] = h[i];
}
