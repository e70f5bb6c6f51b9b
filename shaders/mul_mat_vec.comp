#version 460
// mul_mat_vec: Dst (N, M) = X (N, K) · Wᵀ for few rows of X: tiles of few columns.
#extension GL_GOOGLE_include_directive : require
#include "mul_mat.glsl"
