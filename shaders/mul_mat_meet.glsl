// How the lanes of mul_mat and mul_mat_id meet: a fixed tree. The includer says what becomes of output o of the tile:
//   void store(uint row0, uint col0, uint o, float sum)

// reduce_alone: lane o folds output o. One barrier; best when there are outputs for most lanes.
void reduce_alone(uint row0, uint col0)
{
    uint o = gl_LocalInvocationID.x;
    if (o >= OUTPUTS)
        return;
    precise float v[LANES / 2];
    [[unroll]] for (uint i = 0; i < LANES / 2; i++)
        v[i] = partial[slot(o, i)] + partial[slot(o, i + LANES / 2)];
    [[unroll]] for (uint s = LANES / 4; s > 0; s >>= 1)
        [[unroll]] for (uint i = 0; i < s; i++)
            v[i] = v[i] + v[i + s];
    store(row0, col0, o, v[0]);
}

// reduce_together: all lanes fold all outputs, the same tree.
void reduce_together(uint row0, uint col0)
{
    uint lane = gl_LocalInvocationID.x;
    [[unroll]] for (uint s = LANES / 2; s > 0; s >>= 1) {
        for (uint j = lane; j < OUTPUTS * s; j += LANES) {
            uint o = j / s, i = j % s;
            precise float t = partial[slot(o, i)] + partial[slot(o, i + s)];
            partial[slot(o, i)] = t;
        }
        barrier();
    }
    if (lane < OUTPUTS)
        store(row0, col0, lane, partial[slot(lane, 0)]);
}
