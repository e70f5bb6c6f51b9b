// The paged KV cache: where position `pos` of sequence `seq` lies. Pages holds 64-bit page addresses,
// MaxPages to a sequence. LayerOff bytes into a page lie K (HeadsKV, PagePositions, KeyLen), then
// V (HeadsKV, PagePositions, ValLen). TYPE_F16 or TYPE_F32 is the element.

#ifdef TYPE_F16
#define ELEMENT 2
#else
#define ELEMENT 4
#endif

struct Place {
    uvec2 k, v; // of head 0
};

uvec2 page_of(uint seq, uint pos) { return Words2(a.Pages).w[seq * a.MaxPages + pos / a.PagePositions]; }

Place in_page(uvec2 page, uint pos)
{
    uint slot = pos % a.PagePositions;
    uvec2 k = advance(page, 1, a.LayerOff);
    uvec2 v = advance(k, a.HeadsKV * a.PagePositions, a.KeyLen * ELEMENT);
    return Place(advance(k, slot, a.KeyLen * ELEMENT), advance(v, slot, a.ValLen * ELEMENT));
}

Place kv_place(uint seq, uint pos) { return in_page(page_of(seq, pos), pos); }

// kv_head moves from head 0 to head h of the same position; len is KeyLen or ValLen.
uvec2 kv_head(uvec2 at, uint h, uint len) { return advance(at, h * a.PagePositions, len * ELEMENT); }
