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

// dot16 multiplies 16 signed bytes by 16 that are not -128; dot16_u4, _u5 and _u6 are for bytes of a below 16, 32 and 64.
#ifndef LONGS
int dot16(uvec4 a, uvec4 b)
{
    return dot4(a.x, b.x, 0) + dot4(a.y, b.y, 0) + dot4(a.z, b.z, 0) + dot4(a.w, b.w, 0);
}

int dot16_u4(uvec4 a, uvec4 b) { return dot16(a, b); }
int dot16_u5(uvec4 a, uvec4 b) { return dot16(a, b); }
int dot16_u6(uvec4 a, uvec4 b) { return dot16(a, b); }
#else
// A device without such an instruction does it in 32 bits, two products at a time: (a0 + a1·2^16)·(b1 + b0·2^16) has
// a0·b0 + a1·b1 in its upper half. As many of these are added up as both halves hold.
const uint LOW = 0x00ff00ffu;

uvec4 signed_pairs(uvec4 b) { return (b & LOW) - 0x00800080u; }

// high is the upper half, of a lower one that may be below 0.
int high(uint t) { return int(t + 0x8000u) >> 16; }

// products of the even and the odd bytes, side by side.
uvec4 products(uvec4 a, uvec4 b)
{
    b ^= 0x80808080u;
    b = (b << 16) | (b >> 16);
    return (a & LOW) * signed_pairs(b) + ((a >> 8) & LOW) * signed_pairs(b >> 8);
}

int dot16_u4(uvec4 a, uvec4 b)
{
    uvec4 p = products(a, b);
    return high(p.x + p.y + p.z + p.w);
}

int dot16_u5(uvec4 a, uvec4 b)
{
    uvec4 p = products(a, b);
    return high(p.x + p.y) + high(p.z + p.w);
}

int dot16_u6(uvec4 a, uvec4 b)
{
    uvec4 p = products(a, b);
    return high(p.x) + high(p.y) + high(p.z) + high(p.w);
}

int dot16(uvec4 a, uvec4 b)
{
    a ^= 0x80808080u;
    b ^= 0x80808080u;
    b = (b << 16) | (b >> 16);
    uvec4 even = signed_pairs(a) * signed_pairs(b), odd = signed_pairs(a >> 8) * signed_pairs(b >> 8);
    return high(even.x) + high(even.y) + high(even.z) + high(even.w) + high(odd.x) + high(odd.y) + high(odd.z) + high(odd.w);
}
#endif

// X16 is half a block of X.
struct X16 {
    uvec4 q;
    float d;
    int sum;
};

// load_x16 reads the half block from value `at` on, of a column whose integers are at x and scales at s.
X16 load_x16(uvec2 x, uvec2 s, uint at)
{
    uvec2 block = load8(s, at / 32);
    return X16(load16(x, at / 16), uintBitsToFloat(block.x), bitfieldExtract(int(block.y), int(at & 16), 16));
}
