#version 460
// mul_mat_id: Dst[p] = X[p / Used] · Wᵀ of the expert of pair p, for many pairs: those of an expert together, in the Tiles and
// in the order of Pairs that group_experts makes.
#extension GL_GOOGLE_include_directive : require
#include "mul_mat_id.glsl"

Columns columns(uint block)
{
    uvec4 t = Words4(a.Tiles).w[block];
    return Columns(t.x, t.y, t.z);
}

uint pair_of(uint at) { return Words(a.Pairs).w[at]; }
