#version 460
// gelu_erf: Dst = gelu(X), in its exact form.
#extension GL_GOOGLE_include_directive : require
#include "gelu_erf.glsl"
#include "unary.glsl"
