// Elementary functions made of sums, products and one division: within 3 units in the last place on every device. Vulkan allows a driver's exp 3 + 2|x|
// units, its log near 1 and its tanh near 0 any relative error. What they return for NaN is not NaN: callers see to that.

#ifndef FINE_MATH
#define FINE_MATH
// small_expm1 is exp(x) - 1 for |x| up to 0.35: the Taylor series up to x⁷/7!.
float small_expm1(float x)
{
    precise float p = 1.0 / 5040.0;
    p = fma(p, x, 1.0 / 720.0);
    p = fma(p, x, 1.0 / 120.0);
    p = fma(p, x, 1.0 / 24.0);
    p = fma(p, x, 1.0 / 6.0);
    p = fma(p, x, 1.0 / 2.0);
    precise float y = fma(p * x, x, x);
    return y;
}

// fine_exp is exp(x), 0 where that is below all normal numbers. Above 88 it is exp(88).
float fine_exp(float x)
{
    const float LOWEST = -87.3;
    // x = k ln 2 + r. The first part of ln 2 has 16 bits, so its product with k is exact.
    precise float at = clamp(x, LOWEST, 88.0), k = floor(at * 1.4426950408889634 + 0.5);
    precise float r = (at - k * 0.693145751953125) - k * 1.42860682030941723e-6;
    precise float y = (1.0 + small_expm1(r)) * uintBitsToFloat(uint(int(k) + 127) << 23);
    return x < LOWEST ? 0.0 : y;
}

// fine_expm1 is exp(x) - 1, with all its digits near 0.
float fine_expm1(float x)
{
    precise float far = fine_exp(x) - 1.0;
    return abs(x) < 0.35 ? small_expm1(x) : far;
}

// fine_log1p is log(1 + x) for x from 0 to 1: twice the series of atanh(s), s = x / (2 + x).
float fine_log1p(float x)
{
    precise float s = x / (2.0 + x), q = s * s, p = 1.0 / 15.0;
    p = fma(p, q, 1.0 / 13.0);
    p = fma(p, q, 1.0 / 11.0);
    p = fma(p, q, 1.0 / 9.0);
    p = fma(p, q, 1.0 / 7.0);
    p = fma(p, q, 1.0 / 5.0);
    p = fma(p, q, 1.0 / 3.0);
    precise float y = 2.0 * fma(p * q, s, s);
    return y;
}

float fine_tanh(float x)
{
    precise float e = fine_expm1(2.0 * min(abs(x), 10.0)); // beyond 10 it is 1 in float32
    precise float y = e / (e + 2.0);
    return x < 0.0 ? -y : y;
}
#endif
