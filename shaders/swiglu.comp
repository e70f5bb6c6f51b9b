#version 460
// swiglu: Dst = silu(Gate) * Up.
#extension GL_GOOGLE_include_directive : require
#include "silu.glsl"
#include "glu.glsl"
