// How products of cooperative matrices store what they made: rows of Dst, M values each.

layout(buffer_reference, std430, buffer_reference_align = 16) buffer OutFloats4 { vec4 f[]; };

// store_four stores values m … m+3 of row n, those that there are.
void store_four(uint n, uint m, vec4 y)
{
    uvec2 row = advance(a.Dst, n, a.DstStride * 4);
    if ((a.DstStride & 3) == 0 && m + 4 <= a.M) {
        OutFloats4(row).f[m / 4] = y;
        return;
    }
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (m + c < a.M)
            Floats(row).f[m + c] = y[c];
}
