#version 460
// ssd_scan: the scan of Mamba 2: each row fades the state of each head, adds to it, and reads it; see SSDScanArgs. One workgroup per LANES values of a head of
// a sequence; a lane owns one, and goes through the rows in order.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "softplus.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Delta, A, D, Dt, Dst, States, Seq, Pos;
    uint Rows, Heads, Head, Groups, State, XStride, DeltaStride, DstStride, Sequences, StateOff;
    float DeltaMin;
    uint pad0;
} a;

shared float b[MAX_STATE], c[MAX_STATE]; // of the row and the head's group

void main()
{
    uint blocks = (a.Head + LANES - 1) / LANES;
    uint block = group() % blocks, head = group() / blocks % a.Heads, seq = group() / blocks / a.Heads;
    if (seq >= a.Sequences)
        return;
    uint lane = gl_LocalInvocationID.x, at = block * LANES + lane, n = a.State, size = n * a.Head * 4;
    uint bs = a.Heads * a.Head + head / (a.Heads / a.Groups) * n, cs = bs + a.Groups * n;
    Floats before = Floats(advance(advance(Words2(a.States).w[2 * seq], 1, a.StateOff), head, size));
    Floats after = Floats(advance(advance(Words2(a.States).w[2 * seq + 1], 1, a.StateOff), head, size));
    float rate = Floats(a.A).f[head], skip = Floats(a.D).f[head], dt = Floats(a.Dt).f[head];
    bool begun = false;
    for (uint row = 0; row < a.Rows; row++) {
        if (Words(a.Seq).w[row] != seq)
            continue;
        Floats x = Floats(advance(a.X, row, a.XStride * 4));
        for (uint i = lane; i < n; i += LANES) {
            b[i] = x.f[bs + i];
            c[i] = x.f[cs + i];
        }
        barrier();
        if (at < a.Head) {
            precise float raw = Floats(advance(a.Delta, row, a.DeltaStride * 4)).f[head] + dt;
            float delta = softplus(raw), value = x.f[head * a.Head + at];
            delta = unless_nan(delta, max(delta, a.DeltaMin));
            precise float drop = delta * rate, dx = delta * value, y = 0;
            float fade = fine_exp(drop);
            bool empty = !begun && Words(a.Pos).w[row] == 0;
            for (uint i = 0; i < n; i++) {
                uint of = i * a.Head + at;
                float old = empty ? 0.0 : begun ? after.f[of] : before.f[of];
                precise float add = dx * b[i], s = fma(old, fade, add);
                after.f[of] = s;
                y = fma(s, c[i], y);
            }
            y = fma(value, skip, y);
            Floats(advance(a.Dst, row, a.DstStride * 4)).f[head * a.Head + at] = y;
        }
        begun = true;
        barrier(); // b and c are free again
    }
}
