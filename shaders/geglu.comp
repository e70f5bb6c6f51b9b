#version 460
// geglu: Dst = gelu(Gate) * Up.
#extension GL_GOOGLE_include_directive : require
#include "gelu.glsl"
#include "glu.glsl"
