// load_next is load_chunk with fewer loads, of lanes that go through a row step by step: what a block's chunks share is loaded where
// a step begins one (fresh), and words by the two vecs that have them.

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
uvec4 vec_at(uvec2 at) { return Words4(uvec2(at.x & ~15u, at.y)).w[0]; }

// sixteen reads the words from a multiple of 4 on that have 16 bytes, odd of them late, out of the two vecs that have them all.
Sixteen sixteen(uvec2 at, uint odd)
{
    uvec4 lo = vec_at(at), hi = vec_at(plus(at, 15 + odd));
    if ((at.x & 8) != 0)
        lo = uvec4(lo.zw, hi.xy), hi.xy = hi.zw;
    if ((at.x & 4) != 0)
        lo = uvec4(lo.yzw, hi.x), hi.x = hi.y;
    return Sixteen(lo, hi.x);
}

void load_next(Row w, uint i, bool fresh, inout Chunk c)
{
    uint n = i / 4 % 2, s = 8 * n + i % 4, off = i / 8 * BLOCK_BYTES + w.cut;
    c.odd = off & 2;
    c.at = 8 * (s + c.odd) & 31;
    uvec2 block = plus(w.base, off & ~3);
    c.q = sixteen(plus(block, i % 8 * 16), c.odd);
    c.h = sixteen(plus(block, 128 + n * 32 + i % 2 * 16), c.odd);
    Words scales = Words(plus(block, 192 + ((s + c.odd) & ~3)));
    c.s1 = scales.w[0];
    c.s2 = scales.w[1];
    if (fresh)
        c.d = Words(block).w[52];
}
#else
void load_next(Row w, uint i, bool fresh, inout Chunk c) { c = load_chunk(w, i); }
#endif
