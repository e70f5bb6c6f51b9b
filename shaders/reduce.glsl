// Reductions over the lanes of a workgroup through shared memory. The tree is always the same:
// lane i meets lane i + LANES/2, then i + LANES/4 …; no subgroup decides the order.

shared float tree[LANES];

float sum_lanes(float v)
{
    uint lane = gl_LocalInvocationID.x;
    tree[lane] = v;
    barrier();
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        if (lane < s) {
            precise float t = tree[lane] + tree[lane + s];
            tree[lane] = t;
        }
        barrier();
    }
    float total = tree[0];
    barrier(); // tree is free again
    return total;
}

float max_lanes(float v)
{
    uint lane = gl_LocalInvocationID.x;
    tree[lane] = v;
    barrier();
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        if (lane < s)
            tree[lane] = max(tree[lane], tree[lane + s]);
        barrier();
    }
    float top = tree[0];
    barrier();
    return top;
}
