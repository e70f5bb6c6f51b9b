#version 460
// geglu_erf: Dst = gelu(Gate) * Up, gelu in its exact form.
#extension GL_GOOGLE_include_directive : require
#include "gelu_erf.glsl"
#include "glu.glsl"
