#include "finite.glsl"

// capped keeps a score between -SoftCap and SoftCap. tanh is made of exp(2|z|) in many drivers and overflows to NaN; beyond
// 15 it is 1 in float32.
float capped(float s)
{
    if (a.SoftCap == 0)
        return s;
    precise float z = a.SoftCap * tanh(clamp(s / a.SoftCap, -15.0, 15.0));
    return unless_nan(s, z);
}
