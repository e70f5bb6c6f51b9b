#version 460
// lookup_experts: whether all chosen experts of a layer are in VRAM. One workgroup, a lane per expert, so that the loads are under way side by side.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"
#include "lookup.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Residents, IDs;
    uint Count, pad0;
} a;

void main()
{
    uint lane = gl_LocalInvocationID.x;
    Lookup lookup = lookup_at(a.Residents);
    lookup_begin(lane);
    barrier();
    for (uint i = lane; i < a.Count; i += LANES) {
        uint expert = Words(a.IDs).w[i];
        lookup_one(lookup, i, expert, is_resident(a.Residents, expert));
    }
    lookup_end(lookup, lane);
}
