// Levels of IQ4_NL, IQ4_XS, MXFP4 and NVFP4.

// A byte of levels_of is a level and LEVEL_ZERO more.
#if defined(TYPE_MXFP4) || defined(TYPE_NVFP4)
const int LEVEL_ZERO = 12;
#else
const int LEVEL_ZERO = 0;
#endif

#ifdef LONGS
#if defined(TYPE_MXFP4) || defined(TYPE_NVFP4)
// level is twice a 4-bit float: 0 1 2 3 | 4 6 8 12, and the same below zero.
uint level(uint q)
{
    uint w = q < 8 ? (q < 4 ? 0x0f0e0d0cu : 0x18141210u) : (q < 12 ? 0x090a0b0cu : 0x00040608u);
    return byte_of(w, q & 3);
}
#else
// level looks q up in {-127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113}.
uint level(uint q)
{
    uint w = q < 8 ? (q < 4 ? 0xbfad9881u : 0xf6eaddcfu) : (q < 12 ? 0x26190d01u : 0x71594535u);
    return byte_of(w, q & 3);
}
#endif

#define SHARED_TABLE
// levels of a byte: its low nibble's in bits 0–7, its high nibble's in bits 16–23.
shared uint levels[256];

void init_types()
{
    for (uint i = gl_LocalInvocationID.x; i < 256; i += LANES)
        levels[i] = level(i & 0xf) | level(i >> 4) << 16;
    barrier();
}

// levels_of gives the levels of the low nibbles and of the high ones.
void levels_of(uvec4 q, out uvec4 low, out uvec4 high)
{
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint w = q[i];
        uint one = levels[w & 0xff] | levels[(w >> 8) & 0xff] << 8;
        uint two = levels[(w >> 16) & 0xff] | levels[w >> 24] << 8;
        low[i] = (one & 0xffff) | two << 16;
        high[i] = one >> 16 | (two & 0xffff0000u);
    }
}

#else
// Lanes that look levels up in a table wait for its banks. So the level's bits are computed from the nibble's, of 32 nibbles at once.

// transposed makes bit b of the nibbles of word j bit j of the nibbles of word b.
uvec4 transposed(uvec4 w)
{
    const uint ONE = 0x55555555u, TWO = 0x33333333u;
    uvec4 p = uvec4((w.xz & ONE) | ((w.yw << 1) & ~ONE), ((w.xz >> 1) & ONE) | (w.yw & ~ONE));
    return uvec4((p.xz & TWO) | ((p.yw << 2) & ~TWO), ((p.xz >> 2) & TWO) | (p.yw & ~TWO));
}

void levels_of(uvec4 q, out uvec4 low, out uvec4 high)
{
    uvec4 p = transposed(q), lo, hi; // the level's lower four bits, and its upper ones
    uint b0 = p.x, b1 = p.y, b2 = p.z, b3 = p.w;
#if defined(TYPE_MXFP4) || defined(TYPE_NVFP4) // 12 13 14 15 | 16 18 20 24 | 12 11 10 9 | 8 6 4 0
    lo.x = b0 & ~b2;
    lo.y = b1 ^ ((b0 | b1) & (b2 | (b0 & b3)));
    lo.z = (b3 & (b0 | b1)) ^ (~b2 | (b1 & (b0 ^ ~b3)));
    lo.w = ~b2 | ((b0 ^ ~b1) & (b0 ^ b3));
    hi.x = b2 & ~b3;
    hi.y = hi.z = hi.w = 0;
#else // -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
    lo.x = b2 ^ ((~b0 & ~b2) | (b1 ^ (b3 & (b1 | ~b2))));
    lo.y = b0 ^ ((b0 & ~b1) | (b2 & (b0 ^ ~b3)));
    lo.z = (b0 & (b2 ^ b3)) | (b1 ^ (b2 | (b1 & b3)));
    lo.w = (~b3 & (b1 ^ b2)) | (b0 ^ (b1 | (b0 & b2)));
    hi.x = b0 ^ (b3 & ((b0 ^ b1) | (b0 ^ b2)));
    hi.y = b1 ^ (~b0 & (b3 & (b1 | b2)));
    hi.z = b2 & (b0 | (b1 | ~b3));
    hi.w = ~b3;
#endif
    lo = transposed(lo);
    hi = transposed(hi);
    low = (lo & NIBBLES) | ((hi << 4) & ~NIBBLES);
    high = ((lo >> 4) & NIBBLES) | (hi & ~NIBBLES);
}
#endif
