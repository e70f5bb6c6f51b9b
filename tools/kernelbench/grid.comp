#version 460
// Phases that wait for one another, in one dispatch: is a barrier of the whole device cheaper than the end of a dispatch?
// In each phase a workgroup reads Bytes of Src and leaves a word that its neighbour needs in the next.
//
// A device barrier rests on all workgroups being resident, which Vulkan does not promise: so waiting has an end. A driver may
// end loops too (llvmpipe does, after 65535 turns in all), and no flag is set then: who measures must look at what was left.
#extension GL_GOOGLE_include_directive : require
#include "../../shaders/memory.glsl"

layout(push_constant, std430) uniform Args {
    uvec2 Src, State;
    uint Groups, First, Phases, Quads, Patience, Alone;
} a;

layout(buffer_reference, std430, buffer_reference_align = 4) coherent volatile buffer State {
    uint wrong, pad0[63];
    uint arrived, pad1[63];
    uint open, pad2[63];
    uint left[]; // (2, Groups)
};

shared uint words[LANES];
shared bool met;

// together returns once all workgroups have come to the end of the phase; false: they have not, after so many looks.
bool together(State s, uint phase)
{
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationID.x == 0) {
        if (atomicAdd(s.arrived, 1) == (phase + 1) * a.Groups - 1)
            s.open = phase + 1;
        else
            for (uint looks = 0; s.open <= phase && looks < a.Patience; looks++)
                ;
        met = s.open > phase;
    }
    barrier();
    memoryBarrierBuffer();
    return met;
}

void main()
{
    State s = State(a.State);
    uint lane = gl_LocalInvocationID.x, g = group(), neighbour = (g + 1) % a.Groups;
    if (g >= a.Groups)
        return;
    for (uint i = 0; i < a.Phases; i++) {
        uint phase = a.First + i;
        Words4 src = Words4(advance(a.Src, phase * a.Groups + g, a.Quads * 16));
        uvec4 v = uvec4(0);
        uint q = lane;
        for (; q + 7 * LANES < a.Quads; q += 8 * LANES)
            [[unroll]] for (uint u = 0; u < 8; u++)
                v ^= src.w[q + u * LANES];
        for (; q < a.Quads; q += LANES)
            v ^= src.w[q];
        words[lane] = v.x ^ v.y ^ v.z ^ v.w;
        barrier();
        if (lane == 0) {
            if (phase > 0 && s.left[(phase + 1) % 2 * a.Groups + neighbour] >> 1 != phase - 1)
                s.wrong = 1;
            // The lowest bit is of what was read: else nothing would need to be.
            uint bit = 0;
            for (uint l = 0; l < LANES; l += 32)
                bit ^= words[l] & 1;
            s.left[phase % 2 * a.Groups + g] = phase << 1 | bit;
        }
        if (a.Alone == 0 && i + 1 < a.Phases && !together(s, phase))
            return;
    }
}
