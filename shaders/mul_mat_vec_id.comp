#version 460
// mul_mat_vec_id: Dst[p] = X[p / Used] · Wᵀ of expert IDs[p], for few pairs p: each by itself.
#extension GL_GOOGLE_include_directive : require
#include "mul_mat_id.glsl"

Columns columns(uint block) { return Columns(Words(a.IDs).w[block], block, 1); }
uint pair_of(uint at) { return at; }
