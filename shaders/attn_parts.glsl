// How flash_attn_split leaves parts of the positions for flash_attn_join: of each row, head and part the values' sum
// (ValLen), weighted relative to the part's largest score; behind all of them that score and the sum of the weights.

const uint TILE = 64; // positions that a workgroup takes at a time
const float NONE = -3.0e38; // not -infinity: a driver need not honour it

// parts_begin is where the first part of a row begins that sees positions from `begin` on, span_of how many positions a part
// has where there are `count` from there: they depend on nothing else.
uint parts_begin(uint begin) { return begin / TILE * TILE; }

uint span_of(uint count)
{
    uint parts = min((count + TILE - 1) / TILE, a.MaxParts);
    return ((count + parts - 1) / parts + TILE - 1) / TILE * TILE;
}

// parts_of is how many there are.
uint parts_of(uint count) { return (count + span_of(count) - 1) / span_of(count); }

uint part_index(uint row, uint head, uint part) { return (row * a.Heads + head) * a.MaxParts + part; }
uvec2 part_values(uint index) { return advance(a.Parts, index, a.ValLen * 4); }
uvec2 part_stats(uint index) { return advance(advance(a.Parts, a.Rows * a.Heads * a.MaxParts, a.ValLen * 4), index, 8); }

// What one workgroup leaves another may read in the same dispatch.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Left { float f[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer Left4 { vec4 f[]; };
