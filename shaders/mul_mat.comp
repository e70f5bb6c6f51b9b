#version 460
// mul_mat: Dst (N, M) = X (N, K) · Wᵀ for many rows of X: a weight is dequantised once for NUM_COLS columns.
#extension GL_GOOGLE_include_directive : require
#include "mul_mat.glsl"
