// Rows of W that are not quantised, on 16 bytes, in chunks of 8 values: 16 bytes of halves.

struct Eight {
    vec4 lo, hi;
};

#if defined(TYPE_F32)
#define BYTES 4
#define Chunk Eight
Chunk load_chunk(uvec2 w, uint i) { return Eight(Floats4(w).f[2 * i], Floats4(w).f[2 * i + 1]); }
Eight values(Chunk b) { return b; }
#else
#define BYTES 2
#define Chunk uvec4
Chunk load_chunk(uvec2 w, uint i) { return Words4(w).w[i]; }
#endif

#if defined(TYPE_F16)
Eight values(Chunk b)
{
    return Eight(vec4(unpackHalf2x16(b.x), unpackHalf2x16(b.y)), vec4(unpackHalf2x16(b.z), unpackHalf2x16(b.w)));
}
#endif

#if defined(TYPE_BF16)
vec2 pair(uint w) { return vec2(uintBitsToFloat(w << 16), uintBitsToFloat(w & 0xffff0000u)); }
Eight values(Chunk b) { return Eight(vec4(pair(b.x), pair(b.y)), vec4(pair(b.z), pair(b.w))); }
#endif

Eight load_x(uvec2 x, uint i) { return Eight(Floats4(x).f[2 * i], Floats4(x).f[2 * i + 1]); }

float dot_chunk(Chunk b, Eight x, float acc)
{
    Eight w = values(b);
    [[unroll]] for (uint k = 0; k < 4; k++)
        acc = fma(w.lo[k], x.lo[k], acc);
    [[unroll]] for (uint k = 0; k < 4; k++)
        acc = fma(w.hi[k], x.hi[k], acc);
    return acc;
}
