// What every kernel needs: pointers, 64-bit addresses in 32-bit halves, the flat workgroup index.
// Device memory is read and written in 32-bit words only; addresses are uvec2 (low, high), so that
// no kernel needs 64-bit integers.

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require

#ifdef LANES_ID // it is a specialisation constant
layout(local_size_x = DEFAULT_LANES, local_size_x_id = LANES_ID) in;
#else
layout(local_size_x = LANES) in;
#endif

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Words2 { uvec2 w[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 w[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float f[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Floats4 { vec4 f[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer OutWords { uint w[]; };

// load8 and load16 read 8 and 16 bytes, the i-th of an array. With LONGS they are loaded 64 bits at a time, for devices to which
// each load of a lane is work of its own.
#ifdef LONGS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Longs { uint64_t w[]; };
uvec2 load8(uvec2 base, uint i) { return unpackUint2x32(Longs(base).w[i]); }
uvec4 load16(uvec2 base, uint i) { return uvec4(load8(base, 2 * i), load8(base, 2 * i + 1)); }
#else
uvec2 load8(uvec2 base, uint i) { return Words2(base).w[i]; }
uvec4 load16(uvec2 base, uint i) { return Words4(base).w[i]; }
#endif

// advance returns base + index * stride bytes. Not one 32-bit index into the whole: tensors
// pass 4 GiB, and SPIR-V takes an index as signed.
uvec2 advance(uvec2 base, uint index, uint stride)
{
    uint lo, hi, carry;
    umulExtended(index, stride, hi, lo);
    lo = uaddCarry(base.x, lo, carry);
    return uvec2(lo, base.y + hi + carry);
}

// group numbers the workgroups of a grid whose count may have been folded into y.
uint group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// item numbers the lanes of the whole grid. A grid has no more than 2^32.
uint item() { return group() * LANES + gl_LocalInvocationID.x; }
