// The runs of 8 values that a lane of mul_mat and mul_mat_id takes.
// The includer has the push constants a.K …, NUM_ROWS, NUM_COLS and WHOLE.

const uint OUTPUTS = NUM_ROWS * NUM_COLS;
shared float partial[OUTPUTS * LANES]; // (OUTPUTS, LANES)

// slot turns each output's lanes by its number, so that neither writing nor reading meets a bank twice.
uint slot(uint o, uint lane) { return o * LANES + (lane + o) % LANES; }

void load_w(Row r, uint k, out float v[8])
{
#ifdef TAIL
    if (WHOLE == 0) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? value_at(r, k + i) : 0;
        return;
    }
#endif
    dequant8(r, k, v);
}

// load_x reads values k … k+7 of the column that starts at float `first` after x.
void load_x(uvec2 x, uint first, uint k, out float v[8])
{
    if (WHOLE == 0) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < a.K ? Floats(x).f[first + k + i] : 0;
        return;
    }
    vec4 lo = Floats4(x).f[(first + k) / 4];
    vec4 hi = Floats4(x).f[(first + k) / 4 + 1];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        v[i] = lo[i];
        v[4 + i] = hi[i];
    }
}
