// F32, F16, BF16. Their rows may have any length, so the last run may be a part: TAIL.

#if defined(TYPE_F32)
#define BLOCK 1
#define BLOCK_BYTES 4
#define TAIL 1

float value_at(Row r, uint k) { return uintBitsToFloat(Words(r.base).w[k]); }

void dequant8(Row r, uint k, out float v[8])
{
    [[unroll]] for (uint i = 0; i < 8; i++)
        v[i] = uintBitsToFloat(Words(r.base).w[k + i]);
}
#endif

#if defined(TYPE_F16)
#define BLOCK 1
#define BLOCK_BYTES 2
#define TAIL 1

float value_at(Row r, uint k) { return half_value(half_at(r, 2 * k)); }

void dequant8(Row r, uint k, out float v[8])
{
    [[unroll]] for (uint i = 0; i < 4; i++) {
        vec2 two = unpackHalf2x16(word_at(r, 2 * k + 4 * i));
        v[2 * i] = two.x;
        v[2 * i + 1] = two.y;
    }
}
#endif

#if defined(TYPE_BF16)
#define BLOCK 1
#define BLOCK_BYTES 2
#define TAIL 1

float value_at(Row r, uint k) { return uintBitsToFloat(half_at(r, 2 * k) << 16); }

void dequant8(Row r, uint k, out float v[8])
{
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint two = word_at(r, 2 * k + 4 * i);
        v[2 * i] = uintBitsToFloat(two << 16);
        v[2 * i + 1] = uintBitsToFloat(two & 0xffff0000u);
    }
}
#endif
