// gelu in its exact form: x * Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2 the normal distribution. The coefficients are fitted to the least largest
// relative error: 7e-10 of (Phi(x) - 1/2) / x up to 1, 2e-8 of the tail from there to 14.

#extension GL_GOOGLE_include_directive : require
#include "fine_math.glsl"

// near_half is Phi(x) for |x| < 1, s = x².
float near_half(float x, float s)
{
    precise float p = -7.65420827519847e-06;
    p = fma(p, s, 0.00011348637053743005);
    p = fma(p, s, -0.0011863299878314137);
    p = fma(p, s, 0.009973322972655296);
    p = fma(p, s, -0.06649035960435867);
    p = fma(p, s, 0.3989422917366028);
    precise float phi = fma(x, p, 0.5);
    return phi;
}

// tail is 1 - Phi(x) for x of 1 and more, s = x²: exp(-s/2) times a polynomial of t = 1 / (1 + x/4).
float tail(float x, float s)
{
    precise float t = 1.0 / (1.0 + 0.25 * x), p = -0.046407364308834076;
    p = fma(p, t, 0.10818026214838028);
    p = fma(p, t, -0.02096865139901638);
    p = fma(p, t, 0.09128893911838531);
    p = fma(p, t, 0.07396242767572403);
    p = fma(p, t, 0.09450826048851013);
    p = fma(p, t, 0.09966841340065002);
    p = fma(p, t, 0.09973665326833725);
    precise float q = p * t * fine_exp(-0.5 * s);
    return q;
}

float act(float x)
{
    precise float s = x * x, out_of = tail(abs(x), s), phi = x < 0.0 ? out_of : 1.0 - out_of;
    precise float y = x * (abs(x) < 1.0 ? near_half(x, s) : phi);
    return y;
}
