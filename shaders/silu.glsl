// Where exp(-x) would overflow the result is 0 in float32 as well, and no infinity is divided.
float act(float x)
{
    precise float y = x / (1.0 + exp(-max(x, -88.0)));
    return y;
}
