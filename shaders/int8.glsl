// 8-bit integer products: X as quantize_q8 leaves it, and dot products of four signed bytes.
//
// X (N, K) int8, then S (N, K/32), one uvec2 to a block: its scale d as a float, and the sums of its first
// and of its second 16 integers as int16. A block holds d * X.

#ifdef BYTES_ALONE // the includer multiplies otherwise: what calls this is not called
int dot4(uint a, uint b, int format);
#else
#extension GL_EXT_spirv_intrinsics : require

// OpSDotKHR with packed 4x8-bit vectors; Debian 12's glslc does not know its GLSL name.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int dot4(uint a, uint b, spirv_literal int format);
#endif

// dot16 multiplies 16 signed bytes by 16.
int dot16(uvec4 a, uvec4 b)
{
    return dot4(a.x, b.x, 0) + dot4(a.y, b.y, 0) + dot4(a.z, b.z, 0) + dot4(a.w, b.w, 0);
}

// X16 is half a block of X.
struct X16 {
    uvec4 q;
    float d;
    int sum;
};

// load_x16 reads the half block from value `at` on, of a column whose integers are at x and scales at s.
X16 load_x16(uvec2 x, uvec2 s, uint at)
{
    uvec2 block = Words2(s).w[at / 32];
    return X16(Words4(x).w[at / 16], uintBitsToFloat(block.x), bitfieldExtract(int(block.y), int(at & 16), 16));
}
