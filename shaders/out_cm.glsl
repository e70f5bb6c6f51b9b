// What mul_mat_cm and mul_mat_q_cm leave: rows of Dst, with Residual added where there is one.

#include "store_cm.glsl"

// put_four stores values of a product.
void put_four(uint n, uint m, vec4 sums)
{
    if (n >= a.N || m >= a.M)
        return;
    precise vec4 y = sums * Floats(a.Scales).f[n];
    if ((a.Residual.x | a.Residual.y) != 0) {
        uvec2 other = advance(a.Residual, n, a.ResidualStride * 4);
        if ((a.ResidualStride & 3) == 0 && m + 4 <= a.M) {
            y += Floats4(other).f[m / 4];
        } else {
            [[unroll]] for (uint c = 0; c < 4; c++)
                if (m + c < a.M)
                    y[c] += Floats(other).f[m + c];
        }
    }
    store_four(n, m, y);
}
