// How values come out of the KV cache. Of blocks a row has a place for its scales, too; else nobody looks at it.

struct Eight {
    vec4 lo, hi;
};

#ifdef BLOCKS
float kv_scale(uvec2 scales, uint block)
{
    vec2 two = unpackHalf2x16(Words(scales).w[block / 2]);
    return (block & 1) == 0 ? two.x : two.y;
}

// quants4 are 4 whole numbers of Q8_0, or of the low halves of Q4_0's bytes.
vec4 quants4(uint w)
{
#ifdef TYPE_Q8_0
    int i = int(w);
    return vec4(bitfieldExtract(i, 0, 8), bitfieldExtract(i, 8, 8), bitfieldExtract(i, 16, 8), bitfieldExtract(i, 24, 8));
#else
    return vec4(int(w & 15) - 8, int(w >> 8 & 15) - 8, int(w >> 16 & 15) - 8, int(w >> 24 & 15) - 8);
#endif
}
#endif

// Raw are 8 values as they are stored.
struct Raw {
#if defined(TYPE_F32)
    uvec4 lo, hi;
#elif defined(TYPE_F16)
    uvec4 w;
#else
    uvec2 w;
    uint scale;
#endif
};

// kv_raw loads values 8i … 8i+7 of the rows from `row` on; of blocks the scale is in word s of theirs.
Raw kv_raw(uvec2 row, uvec2 scales, uint i, uint s)
{
#if defined(TYPE_F32)
    return Raw(Words4(row).w[2 * i], Words4(row).w[2 * i + 1]);
#elif defined(TYPE_F16)
    return Raw(Words4(row).w[i]);
#elif defined(TYPE_Q8_0)
    return Raw(Words2(row).w[i], Words(scales).w[s]);
#else
    return Raw(uvec2(Words(row).w[i], 0), Words(scales).w[s]);
#endif
}

// kv_opened are the values of what kv_raw has loaded; i counts from the beginning of their row.
Eight kv_opened(Raw r, uint i)
{
#if defined(TYPE_F32)
    return Eight(uintBitsToFloat(r.lo), uintBitsToFloat(r.hi));
#elif defined(TYPE_F16)
    return Eight(vec4(unpackHalf2x16(r.w.x), unpackHalf2x16(r.w.y)), vec4(unpackHalf2x16(r.w.z), unpackHalf2x16(r.w.w)));
#else
#ifdef TYPE_Q4_0
    r.w.y = r.w.x >> 4;
#endif
    vec2 two = unpackHalf2x16(r.scale);
    float d = (i & 4) == 0 ? two.x : two.y;
    precise vec4 lo = quants4(r.w.x) * d, hi = quants4(r.w.y) * d;
    return Eight(lo, hi);
#endif
}

Eight kv_eight(uvec2 row, uvec2 scales, uint i) { return kv_opened(kv_raw(row, scales, i, i / 8), i); }

// kv_pair loads values 2i and 2i+1 of a row.
vec2 kv_pair(uvec2 row, uvec2 scales, uint i)
{
#if defined(TYPE_F32)
    return uintBitsToFloat(Words2(row).w[i]);
#elif defined(TYPE_F16)
    return unpackHalf2x16(Words(row).w[i]);
#else
#ifdef TYPE_Q8_0
    uint w = Words(row).w[i / 2] >> (i & 1) * 16;
#else
    uint w = Words(row).w[i / 4] >> ((i & 1) * 16 + (i >> 1 & 1) * 4);
#endif
    precise vec2 v = quants4(w).xy * kv_scale(scales, i / 16);
    return v;
#endif
}
