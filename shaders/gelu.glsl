// gelu in its tanh form.

const float SQRT_2_OVER_PI = 0.79788456080286535588;

// tanh is made of exp(2|z|) in many drivers and overflows to NaN; beyond 15 it is 1 in float32.
float act(float x)
{
    precise float z = SQRT_2_OVER_PI * x * (1.0 + 0.044715 * x * x);
    precise float y = 0.5 * x * (1.0 + tanh(clamp(z, -15.0, 15.0)));
    return y;
}
