// Weights in groups of 256 for mul_mat_vec_straight. Every type gives
//   GROUP_BYTES                                     of a group
//   XGroup load_x(Words x, Words s)                 a group of X
//   float dot_group(uint64_t w, bool odd, XGroup x) a lane's part of the product of the group at w, with an odd number in its row

#define LANE gl_SubgroupInvocationID

// words gives lane l the word at + l.
uint words(Words p, uint at)
{
    uint v = p.w[at];
    [[unroll]] for (uint l = 1; l < 8; l++)
        v = mix(v, p.w[at + l], LANE == l);
    return v;
}

// every gives lane l the word at + l * step.
uint every(Words p, uint at, uint step)
{
    uint v = p.w[at];
    [[unroll]] for (uint l = 1; l < 8; l++)
        v = mix(v, p.w[at + l * step], LANE == l);
    return v;
}

// halves gives lanes 0 to 3 the words from `one` on, and lanes 4 to 7 those from `two` on.
uint halves(Words p, uint one, uint two)
{
    uint v = p.w[one];
    [[unroll]] for (uint l = 1; l < 4; l++)
        v = mix(v, p.w[one + l], LANE == l);
    [[unroll]] for (uint l = 0; l < 4; l++)
        v = mix(v, p.w[two + l], LANE == 4 + l);
    return v;
}

// Pairs are four bytes of X as products takes them.
struct Pairs {
    uint even, odd;
};

Pairs pairs_of(uint x)
{
    x ^= 0x80808080u;
    x = (x << 16) | (x >> 16);
    return Pairs((x & LOW) - 0x00800080u, ((x >> 8) & LOW) - 0x00800080u);
}

struct XGroup {
    Pairs q[8];
    float d[8];    // scales, where a lane needs all
    float scale;   // of block l
    int first, second; // sums of its halves
};

void load_scales(Words s, inout XGroup x)
{
    x.scale = uintBitsToFloat(every(s, 0, 2));
    uint sums = every(s, 1, 2);
    x.first = bitfieldExtract(int(sums), 0, 16);
    x.second = int(sums) >> 16;
}

// low_product and high_product are sums of 4 products, of bytes of which the low or the high nibbles count.
uint low_product(uint q, Pairs x) { return (q & 0x000f000fu) * x.even + ((q >> 8) & 0x000f000fu) * x.odd; }
uint high_product(uint q, Pairs x) { return low_product(q >> 4, x); }

#if defined(TYPE_Q4_0) // 8 blocks: d f16, quants[16]
#define GROUP_BYTES 144

XGroup load_x(Words p, Words s)
{
    XGroup x;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        x.q[2 * k] = pairs_of(halves(p, 16 * k, 16 * k + 8));
        x.q[2 * k + 1] = pairs_of(halves(p, 16 * k + 4, 16 * k + 12));
    }
    load_scales(s, x);
    return x;
}

float dot_group(uint64_t w, bool odd, XGroup x)
{
    Words p = Words(w);
    uint head = p.w[0];
    [[unroll]] for (uint l = 1; l < 8; l++)
        head = mix(head, p.w[l * 9 / 2], LANE == l);
    float d = unpackHalf2x16(head >> (LANE % 2 * 16)).x * x.scale;
    float sum = d * float(-8 * (x.first + x.second));
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uint lo = halves(p, 9 * k, 9 * k + 5), hi = words(p, 9 * k + 1);
        uint q = mix((lo >> 16) | (hi << 16), lo, LANE >= 4);
        sum += subgroupShuffle(d, 2 * k + LANE / 4) * float(high(low_product(q, x.q[2 * k]) + high_product(q, x.q[2 * k + 1])));
    }
    return sum;
}
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K) || defined(TYPE_Q8_0)
XGroup load_x(Words p, Words s)
{
    XGroup x;
    [[unroll]] for (uint k = 0; k < 8; k++)
        x.q[k] = pairs_of(words(p, 8 * k));
    load_scales(s, x);
    return x;
}
#endif

#if defined(TYPE_Q8_0) // 8 blocks: d f16, quants[32] signed
#define GROUP_BYTES 272

uint signed_bytes(uint q) { return (q & LOW) - 0x00800080u; }

float dot_group(uint64_t w, bool odd, XGroup x)
{
    Words p = Words(w);
    uint head = p.w[0];
    [[unroll]] for (uint l = 1; l < 8; l++)
        head = mix(head, p.w[l * 17 / 2], LANE == l);
    float d = unpackHalf2x16(head >> (LANE % 2 * 16)).x * x.scale, sum = 0;
    [[unroll]] for (uint k = 0; k < 8; k++) {
        uint at = 17 * (k / 2), q = k % 2 == 0 ? (words(p, at) >> 16) | (words(p, at + 1) << 16) : words(p, at + 9);
        q ^= 0x80808080u;
        sum += subgroupShuffle(d, k) * float(high(signed_bytes(q) * x.q[k].even) + high(signed_bytes(q >> 8) * x.q[k].odd));
    }
    return sum;
}
#endif

#if defined(TYPE_Q4_K) || defined(TYPE_Q5_K) // d, dmin f16, scales[12], of Q5_K fifth bits[32], quants[128]
#ifdef TYPE_Q4_K
#define GROUP_BYTES 144
const uint QUANTS = 4;
#else
#define GROUP_BYTES 176
const uint QUANTS = 12;
#endif

uint product5(uint q, Pairs x) { return (q & 0x001f001fu) * x.even + ((q >> 8) & 0x001f001fu) * x.odd; }

float dot_group(uint64_t w, bool odd, XGroup x)
{
    Words p = Words(w);
    vec2 d = unpackHalf2x16(p.w[0]);
    // Lane l decodes scale and min of block l, as pair_scales does.
    uint s = 8 * (LANE & 3), w0 = p.w[1], w1 = p.w[2], w2 = p.w[3];
    uint sc = mix(((w2 >> s) & 0x0f) | ((w0 >> (s + 2)) & 0x30), (w0 >> s) & 0x3f, LANE < 4);
    uint m = mix(((w2 >> (s + 4)) & 0x0f) | ((w1 >> (s + 2)) & 0x30), (w1 >> s) & 0x3f, LANE < 4);
    float scale = d.x * x.scale * float(int(sc));
    float sum = -(d.y * x.scale * float(int(m) * (x.first + x.second)));
#ifdef TYPE_Q5_K
    uint h = words(p, 4);
#endif
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uint q = words(p, QUANTS + 8 * k);
#ifdef TYPE_Q4_K
        uint t1 = low_product(q, x.q[2 * k]), t2 = high_product(q, x.q[2 * k + 1]);
#else
        uint t1 = product5((q & 0x0f0f0f0fu) | ((h >> (2 * k)) & 0x01010101u) << 4, x.q[2 * k]);
        uint t2 = product5(((q >> 4) & 0x0f0f0f0fu) | ((h >> (2 * k)) & 0x02020202u) << 3, x.q[2 * k + 1]);
#endif
        sum += subgroupShuffle(scale, 2 * k) * float(high(t1));
        sum += subgroupShuffle(scale, 2 * k + 1) * float(high(t2));
    }
    return sum;
}
#endif

#if defined(TYPE_Q6_K) // low 4 bits[128], upper 2 bits[64], scales[16] signed, d f16
#define GROUP_BYTES 210

XGroup load_x(Words p, Words s)
{
    XGroup x;
    [[unroll]] for (uint k = 0; k < 8; k++) {
        x.q[k] = pairs_of(words(p, 8 * k));
        x.d[k] = uintBitsToFloat(s.w[2 * k]);
    }
    return x;
}

// at_half reads words that begin 2 bytes later where the group's number is odd.
uint at_half(Words p, uint at, bool odd) { return odd ? (words(p, at) >> 16) | (words(p, at + 1) << 16) : words(p, at); }

uint product6(uint q, Pairs x) { return ((q & 0x003f003fu) - 0x00200020u) * x.even + (((q >> 8) & 0x003f003fu) - 0x00200020u) * x.odd; }

float dot_group(uint64_t w, bool odd, XGroup x)
{
    Words p = Words(odd ? w - 2 : w);
    float d = unpackHalf2x16(odd ? p.w[52] >> 16 : p.w[52]).x, sum = 0;
    [[unroll]] for (uint n = 0; n < 2; n++) {
        uint q1 = at_half(p, 16 * n, odd), q2 = at_half(p, 16 * n + 8, odd), h = at_half(p, 32 + 8 * n, odd);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            uint q = k % 2 == 0 ? q1 : q2;
            q = k < 2 ? q & 0x0f0f0f0fu : (q >> 4) & 0x0f0f0f0fu;
            q |= k < 2 ? ((h << (4 - 2 * k)) & 0x30303030u) : ((h >> (2 * k - 4)) & 0x30303030u);
            uint b = 8 * n + 2 * k + (odd ? 2 : 0); // byte of the scale of lanes 0 to 3
            int s = int(p.w[48 + b / 4] << (24 - 8 * (b % 4) - (LANE < 4 ? 0 : 8))) >> 24;
            sum += float(s) * x.d[4 * n + k] * float(high(product6(q, x.q[4 * n + k])));
        }
    }
    return d * sum;
}
#endif
