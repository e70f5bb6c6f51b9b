#version 460
// mul_mat_vec and mul_mat: Dst (N, M) = X (N, K) · Wᵀ, for few rows of X by tiles of few columns, for many by larger tiles.
#extension GL_GOOGLE_include_directive : require
#include "mul_mat.glsl"
