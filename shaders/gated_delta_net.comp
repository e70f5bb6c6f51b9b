#version 460
// gated_delta_net: each row fades the state of a head, by one factor or one for each of its rows, corrects what its key reads there, and reads with its query; see GatedDeltaNetArgs. One
// workgroup per LANES columns of a head of a sequence; a lane owns a column, and goes through the rows in order.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "reduce.glsl"
#include "softplus.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 X, Beta, Alpha, A, Dt, Dst, States, Seq, Pos;
    uint Rows, KeyHeads, Heads, Head, XStride, DstStride, Tiled, GateStride, Group, Jump, AlphaOff, Sequences, StateOff, ByChannel;
} a;

shared float query[MAX_STATE], key[MAX_STATE]; // of length 1, the query divided by sqrt(Head)
shared float fades[MAX_STATE];                 // with ByChannel: the factor of each row of the state

// load brings a row's query and key of a head into shared memory.
void load(Floats x, uint head)
{
    uint lane = gl_LocalInvocationID.x;
    precise float qq = 0, kk = 0;
    for (uint i = lane; i < a.Head; i += LANES) {
        float q = x.f[head * a.Head + i], k = x.f[(a.KeyHeads + head) * a.Head + i];
        qq = fma(q, q, qq);
        kk = fma(k, k, kk);
    }
    precise float qsum = sum_lanes(qq) + 1e-6, ksum = sum_lanes(kk) + 1e-6;
    precise float qlong = sqrt(qsum) * sqrt(float(a.Head)), klong = sqrt(ksum);
    for (uint i = lane; i < a.Head; i += LANES) {
        query[i] = x.f[head * a.Head + i] / qlong;
        key[i] = x.f[(a.KeyHeads + head) * a.Head + i] / klong;
    }
    barrier();
}

// load_fades computes the factors of a head's state in a row.
void load_fades(uint row, uint head)
{
    for (uint i = gl_LocalInvocationID.x; i < a.Head; i += LANES) {
        uint at = head * a.Head + i;
        precise float alpha = Floats(advance(a.Alpha, row, a.Heads * a.Head * 4)).f[at] + Floats(a.Dt).f[at];
        precise float rate = Floats(a.A).f[head] * softplus(alpha);
        fades[i] = exp(rate);
    }
    barrier();
}

// head_fade is the factor of a head's state in a row, the same for the whole state.
float head_fade(uint row, uint head, uint gate)
{
    precise float alpha = Floats(advance(a.Alpha, row, a.GateStride * 4)).f[gate + a.AlphaOff] + Floats(a.Dt).f[head];
    precise float rate = Floats(a.A).f[head] * softplus(alpha);
    return exp(rate);
}

float sigmoid(float x)
{
    precise float y = 1.0 / (1.0 + exp(-max(x, -88.0)));
    return unless_nan(x, y);
}

void main()
{
    uint blocks = (a.Head + LANES - 1) / LANES;
    uint block = group() % blocks, head = group() / blocks % a.Heads, seq = group() / blocks / a.Heads;
    if (seq >= a.Sequences)
        return;
    uint col = block * LANES + gl_LocalInvocationID.x, n = a.Head;
    uint from = a.Tiled != 0 ? head % a.KeyHeads : head / (a.Heads / a.KeyHeads);
    uint gate = head / a.Group * a.Jump + head % a.Group;
    Floats before = Floats(advance(advance(Words2(a.States).w[2 * seq], 1, a.StateOff), head, n * n * 4));
    Floats after = Floats(advance(advance(Words2(a.States).w[2 * seq + 1], 1, a.StateOff), head, n * n * 4));
    bool begun = false;
    for (uint row = 0; row < a.Rows; row++) {
        if (Words(a.Seq).w[row] != seq)
            continue;
        Floats x = Floats(advance(a.X, row, a.XStride * 4));
        load(x, from);
        bool by_channel = a.ByChannel != 0;
        precise float fade = 1;
        if (by_channel)
            load_fades(row, head);
        else
            fade = head_fade(row, head, gate);
        precise float beta = sigmoid(Floats(advance(a.Beta, row, a.GateStride * 4)).f[gate]);
        if (col < n) {
            bool empty = !begun && Words(a.Pos).w[row] == 0;
            precise float read = 0;
            for (uint i = 0; i < n && !empty; i++) {
                precise float k = by_channel ? key[i] * fades[i] : key[i];
                read = fma(begun ? after.f[i * n + col] : before.f[i * n + col], k, read);
            }
            read = read * fade;
            precise float delta = (x.f[(2 * a.KeyHeads + head) * n + col] - read) * beta;
            precise float result = 0;
            for (uint i = 0; i < n; i++) {
                precise float s = empty ? 0.0 : (begun ? after.f[i * n + col] : before.f[i * n + col]) * (by_channel ? fades[i] : fade);
                s = fma(key[i], delta, s);
                after.f[i * n + col] = s;
                result = fma(s, query[i], result);
            }
            Floats(advance(a.Dst, row, a.DstStride * 4)).f[head * n + col] = result;
        }
        begun = true;
        barrier(); // query and key are free again
    }
}
