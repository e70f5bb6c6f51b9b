// What mul_mat_cm and mul_mat_q_cm leave: rows of Dst, with Residual added where there is one.

layout(buffer_reference, std430, buffer_reference_align = 16) buffer OutFloats4 { vec4 f[]; };

// put_four stores values m … m+3 of row n, those that there are.
void put_four(uint n, uint m, vec4 sums)
{
    if (n >= a.N || m >= a.M)
        return;
    precise vec4 y = sums * Floats(a.Scales).f[n];
    bool adds = (a.Residual.x | a.Residual.y) != 0, whole = ((a.DstStride | a.ResidualStride) & 3) == 0;
    uvec2 row = advance(a.Dst, n, a.DstStride * 4), other = advance(a.Residual, n, a.ResidualStride * 4);
    if (whole && m + 4 <= a.M) {
        if (adds)
            y += Floats4(other).f[m / 4];
        OutFloats4(row).f[m / 4] = y;
        return;
    }
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (m + c < a.M)
            Floats(row).f[m + c] = y[c] + (adds ? Floats(other).f[m + c] : 0);
}
