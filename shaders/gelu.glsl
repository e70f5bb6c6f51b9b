// gelu in its tanh form: x (1 + tanh z) / 2, which is x / (1 + exp(-2z)). The latter keeps its digits where tanh z is near -1.

#extension GL_GOOGLE_include_directive : require
#include "fine_math.glsl"

const float SQRT_2_OVER_PI = 0.79788456080286535588;

float act(float x)
{
    precise float z = SQRT_2_OVER_PI * x * (1.0 + 0.044715 * x * x);
    precise float y = x / (1.0 + fine_exp(-2.0 * z));
    return y;
}
