// softplus is log(1 + exp(x)) with all its digits where that is small, too: time steps are of 1e-3 and less.

#extension GL_GOOGLE_include_directive : require
#include "fine_math.glsl"
#include "finite.glsl"

float softplus(float x)
{
    precise float y = max(x, 0.0) + fine_log1p(fine_exp(-abs(x)));
    return unless_nan(x, y);
}
