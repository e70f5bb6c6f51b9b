#version 460
// relu2: Dst = max(X, 0)².
#extension GL_GOOGLE_include_directive : require
#include "finite.glsl"

float act(float x)
{
    precise float r = max(x, 0.0), y = r * r;
    return unless_nan(x, y);
}

#include "unary.glsl"
