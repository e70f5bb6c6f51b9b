#version 460
// gelu: Dst = gelu(X), in its tanh form.
#extension GL_GOOGLE_include_directive : require
#include "gelu.glsl"
#include "unary.glsl"
