// Tests for NaN and infinities, of bits: a compiler may take for granted that no float is NaN, and leave a test of floats out. Magnitudes
// of floats as integers have the same order, NaN above infinity above all numbers.

#ifndef FINITE
#define FINITE
const uint INFINITY = 0x7f800000, NAN = 0x7fc00000;

uint magnitude(float x) { return floatBitsToUint(x) & 0x7fffffff; }
bool is_nan(float x) { return magnitude(x) > INFINITY; }

// unless_nan is y, which was made of x by what may have lost that x is NaN.
float unless_nan(float x, float y) { return is_nan(x) ? x : y; }
#endif
