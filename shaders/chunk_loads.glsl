// load_next is load_chunk with fewer loads, of lanes that go through a row step by step: what a block's chunks share is loaded where
// a step begins one (fresh), and bytes at any even address by two vecs that have them.

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K)
void load_next(Row w, uint i, bool fresh, inout Chunk c)
{
    uint b = i / 8 * (BLOCK_BYTES / 16);
    if (fresh)
        c.head = load16(w.base, b);
#ifdef TYPE_Q4_K
    c.q = load16(w.base, b + 1 + i % 8);
#else
    c.h = load16(w.base, b + 1 + i % 2);
    c.q = load16(w.base, b + 3 + i % 8);
#endif
}
#elif defined(TYPE_Q6_K)
// address is that of an offset into a row.
uvec2 address(Row r, uint off)
{
    uint carry, lo = uaddCarry(r.base.x, off + r.cut, carry);
    return uvec2(lo, r.base.y + carry);
}

uvec4 vec_at(uvec2 at) { return Words4(uvec2(at.x & ~15u, at.y)).w[0]; }

// sixteen reads 16 bytes at an even offset: the last of them is in the second vec.
uvec4 sixteen(Row r, uint off)
{
    uvec2 at = address(r, off);
    uvec4 lo = vec_at(at), hi = vec_at(address(r, off + 15));
    if ((at.x & 8) != 0)
        lo = uvec4(lo.zw, hi.xy), hi.xy = hi.zw;
    if ((at.x & 4) != 0)
        lo = uvec4(lo.yzw, hi.x), hi.x = hi.y;
    return (at.x & 2) != 0 ? (lo >> 16) | (uvec4(lo.yzw, hi.x) << 16) : lo;
}

void load_next(Row w, uint i, bool fresh, inout Chunk c)
{
    uint n = i / 4 % 2, s = 8 * n + i % 4, at = i / 8 * BLOCK_BYTES;
    c.q = sixteen(w, at + i % 8 * 16);
    c.h = sixteen(w, at + 128 + n * 32 + i % 2 * 16);
    c.s1 = byte_at(w, at + 192 + s);
    c.s2 = byte_at(w, at + 196 + s);
    if (fresh)
        c.d = half_at(w, at + 208);
}
#else
void load_next(Row w, uint i, bool fresh, inout Chunk c) { c = load_chunk(w, i); }
#endif
