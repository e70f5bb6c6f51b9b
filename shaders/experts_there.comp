#version 460
// experts_there: whether a step may go on with a layer. One workgroup, a lane per expert, so that the loads are under way side by side.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "there.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 There, IDs;
    uint Count, pad0;
} a;

void main()
{
    uint lane = gl_LocalInvocationID.x;
    There there = there_at(a.There);
    there_begin(lane);
    barrier();
    for (uint i = lane; i < a.Count; i += LANES) {
        uint expert = Words(a.IDs).w[i];
        there_one(there, i, expert, there_has(a.There, expert));
    }
    there_end(there, lane);
}
