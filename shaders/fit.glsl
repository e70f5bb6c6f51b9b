// fit is the power of two that brings a row's largest value, top, to 256 … 512, so that as halves
// none overflows; down undoes it.
float fit(float top, out float down)
{
    const uint BIAS = 127, SHIFT = 8; // of the exponent's field; the power of two that the largest value is brought to
    // A row of zeros, or of what is not finite, stays as it is.
    uint exponent = clamp(floatBitsToUint(top) >> 23 & 0xffu, 1 + SHIFT, 245 + SHIFT);
    if (top == 0 || isinf(top) || isnan(top))
        exponent = BIAS + SHIFT;
    down = uintBitsToFloat((exponent - SHIFT) << 23);
    return uintBitsToFloat((2 * BIAS + SHIFT - exponent) << 23);
}
