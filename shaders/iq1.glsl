// The grid of IQ1_S and IQ1_M. A value is (entry ± 1/8) times its scale, so a byte is 8 times the entry's digit 0, 1 or 2, with 2 more where the eighth is
// above: less 9 it is 8 times the value.
#define ZERO 9
#define IN_ORDER
#define GRID_AT 17408
#define GRID_ENTRIES 2048
#include "grid.glsl"

uvec2 ones(uint index, bool below)
{
    uint w = entry(index), above = below ? 0 : 0x02020202u;
    return uvec2((w & 0x18181818u) | above, ((w >> 2) & 0x18181818u) | above);
}
