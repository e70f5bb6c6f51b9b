// The body of a mul_mat tile, inside its main: this lane's part of every output, for rows w and what LOAD_X loads of column c.
    precise float acc[NUM_ROWS][NUM_COLS];
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;

    for (uint k = lane * 8; k < a.K; k += LANES * 8) {
        float wv[NUM_ROWS][8];
        [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
            load_w(w[r], k, wv[r]);
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++) {
            float xv[8];
            LOAD_X(c, k, xv);
            [[unroll]] for (uint i = 0; i < 8; i++)
                [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
                    acc[r][c] = fma(wv[r][i], xv[i], acc[r][c]);
        }
    }

    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            partial[slot(c * NUM_ROWS + r, lane)] = acc[r][c];
