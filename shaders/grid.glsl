// The grid of a type, of which an index stands for 8 or 4 values. The includer says where it begins in the buffer of all grids, how many entries it
// has, and with GRID_8 that they are of 8 bytes:
//   GRID_AT, GRID_ENTRIES
// With OF_BYTES a workgroup has a copy in shared memory, which init_types makes.

#ifndef GRIDS
#define GRIDS a.Grids
#endif

#ifdef GRID_8
#define Entry uvec2
#define Entries Words2
#else
#define Entry uint
#define Entries Words
#endif

#ifdef OF_BYTES
#define SHARED_TABLE
shared Entry grid[GRID_ENTRIES];

void init_types()
{
    Entries from = Entries(plus(GRIDS, GRID_AT));
    for (uint i = gl_LocalInvocationID.x; i < GRID_ENTRIES; i += LANES)
        grid[i] = from.w[i];
    barrier();
}

Entry entry(uint i) { return grid[i]; }
#else
Entry entry(uint i) { return Entries(plus(GRIDS, GRID_AT)).w[i]; }
#endif

// signed4 makes those of 4 bytes from 1 to 127 negative whose bit is set in m.
uint signed4(uint b, uint m)
{
    uint ones = ((m & 15) * 0x00204081u) & 0x01010101u;
    return (b ^ ones * 255) + ones; // nothing is carried from byte to byte
}

uvec2 signed8(uvec2 b, uint m) { return uvec2(signed4(b.x, m), signed4(b.y, m >> 4)); }

// eight_signs adds to 7 signs the eighth, which makes the number of set bits even.
uint eight_signs(uint m) { return m | (bitCount(m) & 1) << 7; }

// sub_scale is d times n times `of`.
float sub_scale(uint d, uint n, float of)
{
    precise float s = half_value(d) * float(n) * of;
    return s;
}
