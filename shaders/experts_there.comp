#version 460
// experts_there: whether a step may go on: Go[0] = 0 and Go[1] = Layer where Go[0] is not 0 and an expert of IDs has no address
// in Table. One workgroup, a lane per expert, so that the loads are under way side by side.
#extension GL_GOOGLE_include_directive : require
#include "memory.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer OutWords2 { uvec2 w[]; };

layout(push_constant, std430) uniform Args {
    uvec2 Table, IDs, Go;
    uint Count, Layer;
} a;

shared uint absent;

void main()
{
    uint lane = gl_LocalInvocationID.x, go = Words2(a.Go).w[0].x; // under way beside the others
    if (lane == 0)
        absent = 0;
    barrier();
    for (uint i = lane; i < a.Count; i += LANES) {
        uvec2 at = Words2(a.Table).w[Words(a.IDs).w[i]];
        if ((at.x | at.y) == 0)
            atomicOr(absent, 1);
    }
    barrier();
    if (lane == 0 && absent != 0 && go != 0)
        OutWords2(a.Go).w[0] = uvec2(0, a.Layer);
}
