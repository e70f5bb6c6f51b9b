// What kernels with subgroup operations share. No subgroup size is assumed but a power of two from 4 on.

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

// lane numbers the workgroup's lanes so that a subgroup's are consecutive.
uint subgroup_lane() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

// sum_within adds v over aligned runs of `width` lanes, at most a subgroup; every lane of a run gets the sum.
float sum_within(float v, uint width)
{
    for (uint s = width / 2; s > 0; s >>= 1)
        v += subgroupShuffleXor(v, s);
    return v;
}
