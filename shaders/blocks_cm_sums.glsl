    // See blocks_cm.glsl. Of a last step that has too many chunks they repeat the last one: X's columns there are zeros.
    coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator> acc[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        acc[i] = coopmat<float, gl_ScopeSubgroup, TN, TM, gl_MatrixUseAccumulator>(0.0);

    uint part = gl_LocalInvocationID.x % PARTS, member = gl_LocalInvocationID.x / SHARE % CHUNKS;
    uint chunks = a.K / 32, steps = (chunks + CHUNKS - 1) / CHUNKS;
    Chunk raw[W_CHUNKS];
    uvec4 rx[X_VECS];
    uint k = column(0, part);
    [[unroll]] for (uint i = 0; i < W_CHUNKS; i++)
        raw[i] = load_chunk(w[i], min(member, chunks - 1));
    [[unroll]] for (uint i = 0; i < X_VECS; i++)
        rx[i] = X_VEC(i, k);
    [[dont_unroll]] for (uint step = 0; step < steps; step++) {
        uint mine = min(step * CHUNKS + member, chunks - 1);
        uint at = STAGES > 1 ? step % 2 * STEP_VECS : 0;
        if (STAGES == 1)
            barrier();
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            tile[at + x_member(i) * STRIDE + part] = rx[i];
        [[unroll]] for (uint i = 0; i < W_CHUNKS; i++)
            decode(raw[i], mine, at + (BN + w_member(i)) * STRIDE + member * 4);
        barrier();
        uint next = step + 1 < steps ? step + 1 : 0; // the last brings what nobody reads
        k = column(next, part);
        [[unroll]] for (uint i = 0; i < W_CHUNKS; i++)
            if (WIDE != 0)
                load_next(w[i], min(next * CHUNKS + member, chunks - 1), next * CHUNKS % 8 == 0, raw[i]);
            else
                raw[i] = load_chunk(w[i], min(next * CHUNKS + member, chunks - 1));
        [[unroll]] for (uint i = 0; i < X_VECS; i++)
            rx[i] = X_VEC(i, k);
        [[unroll]] for (uint c = 0; c < BK / TK; c++) {
            coopmat<float16_t, gl_ScopeSubgroup, TN, TK, gl_MatrixUseA> xm[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; i++)
                coopMatLoad(xm[i], tile, at + (wn + i * TN) * STRIDE + c * TK / 8, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                coopmat<float16_t, gl_ScopeSubgroup, TK, TM, gl_MatrixUseB> wmat;
                coopMatLoad(wmat, tile, at + (BN + wm + j * TM) * STRIDE + c * TK / 8, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; i++)
                    acc[j * DOWN + i] = coopMatMulAdd(xm[i], wmat, acc[j * DOWN + i]);
            }
        }
    }
    barrier();

    // Out by 16 rows of X of a subgroup at a time, through its own part of the shared memory.
    uint own = gl_SubgroupID * TN * OUT_STRIDE;
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(acc[j * DOWN + i], tile, own + j * TM / 4, OUT_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        for (uint v = gl_SubgroupInvocationID; v < TN * QUADS; v += gl_SubgroupSize)
            put(wn + i * TN + v / QUADS, v % QUADS, own + v / QUADS * OUT_STRIDE);
        subgroupBarrier();
    }
