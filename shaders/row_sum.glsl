// Sums over rows of which each has ROW_LANES of a workgroup's lanes. They are fewer than all only where a row has no more runs of 4 values: the lanes that it
// then lacks would add zeros, so the bits are the same.

layout(constant_id = 0) const uint ROW_LANES = DEFAULT_ROW_LANES;

shared float tree[LANES];

// sum_row adds up what a row's lanes have: lane i meets lane i + ROW_LANES/2, then i + ROW_LANES/4 … A barrier must come before the next sum.
float sum_row(float v)
{
    uint at = gl_LocalInvocationID.x, lane = at % ROW_LANES;
    tree[at] = v;
    barrier();
    [[unroll]] for (uint s = ROW_LANES / 2; s > 0; s >>= 1) {
        if (lane < s) {
            precise float t = tree[at] + tree[at + s];
            tree[at] = t;
        }
        barrier();
    }
    return tree[at - lane];
}
