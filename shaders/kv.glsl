// The paged KV cache: where position `pos` of sequence `seq` lies. Pages holds 64-bit page addresses, MaxPages to a
// sequence. LayerOff bytes into a page lie the planes of K, one for each of HeadsKV heads, then those of V. A plane has a row
// of KeyLen or ValLen values for each of PagePositions: floats, halves, or of blocks the quants of all rows, then their
// scales in whole words, two to a word. So blocks, too, are read in words, and no word belongs to two rows.
//
// The includer may say by KV_FLOATS, a constant, which of floats and halves it is, and where the sizes are that are no arguments.

#ifdef KV_FLOATS
#elif defined(TYPE_Q8_0) || defined(TYPE_Q4_0)
#define BLOCKS
#endif
#ifndef KEY_LEN
#define KEY_LEN a.KeyLen
#define VAL_LEN a.ValLen
#define HEADS_KV a.HeadsKV
#endif

uint row_bytes(uint len)
{
#if defined(KV_FLOATS)
    return len * (KV_FLOATS != 0 ? 4 : 2);
#elif defined(TYPE_F32)
    return len * 4;
#elif defined(TYPE_F16)
    return len * 2;
#elif defined(TYPE_Q8_0)
    return len;
#else
    return len / 2;
#endif
}

uint scale_bytes(uint len)
{
#ifdef BLOCKS
    return (len + 63) / 64 * 4;
#else
    return 0;
#endif
}

uint plane_bytes(uint len) { return a.PagePositions * (row_bytes(len) + scale_bytes(len)); }

struct Place {
    uvec2 k, v; // of head 0
    uint slot;  // in the page
};

uvec2 page_of(uint seq, uint pos) { return Words2(a.Pages).w[seq * a.MaxPages + pos / a.PagePositions]; }

Place in_page(uvec2 page, uint pos)
{
    uint slot = pos % a.PagePositions;
    uvec2 k = advance(page, 1, a.LayerOff);
    uvec2 v = advance(k, HEADS_KV, plane_bytes(KEY_LEN));
    return Place(advance(k, slot, row_bytes(KEY_LEN)), advance(v, slot, row_bytes(VAL_LEN)), slot);
}

Place kv_place(uint seq, uint pos) { return in_page(page_of(seq, pos), pos); }

// kv_head moves from head 0 to head h of the same position; len is KeyLen or ValLen.
uvec2 kv_head(uvec2 at, uint h, uint len) { return advance(at, h, plane_bytes(len)); }

// kv_scales is where the scales of the row at `row` are.
uvec2 kv_scales(uvec2 row, uint slot, uint len)
{
    return advance(row, 1, (a.PagePositions - slot) * row_bytes(len) + slot * scale_bytes(len));
}
