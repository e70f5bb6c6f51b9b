package selftest

import (
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
)

// together returns, for a role, the numbers of rows that are computed together, and the indices of the rows whose bits are compared, at different places of
// tiles.
func together(role kernels.Role) (numbers, places []int) {
	if role == kernels.Decode {
		return []int{2, 3, 8}, []int{0, 1, 2, 7}
	}
	return []int{8, 9, 16, 17, 300}, []int{0, 1, 7, 8, 14, 15, 16, 17, 31, 63, 64, 127, 128, 255, 256, 299}
}

// className names a role in the names of cases.
func className(role kernels.Role) string { return [...]string{"prompt", "decode"}[role] }

// alike makes buffers for outputs of cols values a row: one for each number of rows computed together (of), and one for each compared row computed alone.
// It wants the rows in both to have the same bits.
func alike(j *job, role kernels.Role, cols int) (numbers []int, of []span, places []int, alone []span) {
	numbers, places = together(role)
	for range places {
		s := j.space(shape(1, cols, 0))
		alone, j.spare = append(alone, s), append(j.spare, s)
	}
	for _, n := range numbers {
		s := j.space(shape(n, cols, 0))
		of, j.spare = append(of, s), append(j.spare, s)
		for i, p := range places {
			if p < n {
				j.same(fmt.Sprintf("row %d of %d and alone", p, n), span{s.off + 4*p*cols, 4 * cols}, alone[i], shape(1, cols, 0))
			}
		}
	}
	return numbers, of, places, alone
}

// roleMemory returns a function that sets a recorder's role and gives it the memory that rows of cols values need in that role, and that attention with
// these heads needs.
func roleMemory(j *job, role kernels.Role, rows, cols, heads, valLen int) func(*kernels.Recorder) {
	few := fewRowsBuffers(j, cols, heads, valLen)
	halves := j.alloc(int(shaders.ScratchBytes(uint32(rows), uint32(cols), 1<<20)))
	bytes := j.alloc(int(2 * shaders.Q8Size(uint32(rows), uint32(cols+31)/32*32)))
	j.spare = append(j.spare, halves, bytes)
	return func(r *kernels.Recorder) {
		few(r)
		if r.Rows.Role = role; role == kernels.Prompt {
			r.Memory.Tiles = kernels.Scratch{Address: j.addr(halves), Bytes: int64(halves.n)}
			r.Memory.Q8 = kernels.Scratch{Address: j.addr(bytes), Bytes: int64(bytes.n)}
		}
	}
}

// ClassMulMat tests that products of rows of one role have the same bits, whether the rows are multiplied together, in several numbers, or alone.
func ClassMulMat(t gguf.Type, role kernels.Role, m, k int) Case {
	return Case{
		Kernel: typed("mul_mat", t), Shape: fmt.Sprintf("class %s M=%d K=%d", className(role), m, k), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			w, _, err := j.weights(t, m, k, 1)
			if err != nil {
				return err
			}
			numbers, of, places, alone := alike(j, role, m)
			x := j.normal(numbers[len(numbers)-1], k, 0)
			at := j.addr(j.mat(x))
			prepare := roleMemory(j, role, x.Rows, k, 1, 8)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				run := func(row, n int, to span) error {
					return kernels.MulMat(r, t, shaders.MulMatArgs{W: j.addr(w), X: at + uint64(4*row*k), Dst: j.addr(to), M: uint32(m), K: uint32(k), N: uint32(n), XStride: uint32(k), DstStride: uint32(m)})
				}
				return runAlike(r, numbers, of, places, alone, run)
			}
			return nil
		},
	}
}

// runAlike calls run for each number of rows together, then for each compared row alone, with the buffers of [alike].
func runAlike(r *kernels.Recorder, numbers []int, of []span, places []int, alone []span, run func(row, n int, to span) error) error {
	for i, n := range numbers {
		if err := run(0, n, of[i]); err != nil {
			return err
		}
	}
	for i, p := range places {
		if err := run(p, 1, alone[i]); err != nil {
			return err
		}
	}
	return r.Finish()
}

// ClassAttn tests that attention of rows of one sequence and one role has the same bits, whether the rows are computed together, in several numbers, or
// alone.
func ClassAttn(t gguf.Type, role kernels.Role, s AttnShape) Case {
	s.Heads, s.HeadsKV, s.ValLen, s.Page = 4, 2, s.KeyLen, 32
	return Case{
		Kernel: typed("flash_attn", t), Shape: fmt.Sprintf("class %s %s", className(role), s), MaxNMSE: nmseAttnHalf,
		build: func(j *job) error {
			cols := s.Heads * s.KeyLen
			numbers, of, places, alone := alike(j, role, cols)
			rows := numbers[len(numbers)-1]
			pos, seq := make([]uint32, rows), make([]uint32, rows)
			for i := range pos {
				pos[i], seq[i] = uint32(i+5), 1
			}
			p := newPaged(j, t, 2, (rows+5+s.Page-1)/s.Page, s.Page, s.HeadsKV, s.KeyLen, s.ValLen)
			p.fill(j, 1, rows+5)
			q := j.normal(rows, cols, 0)
			a := s.args(j, p, pos, seq)
			at := j.addr(j.mat(q))
			prepare := roleMemory(j, role, rows, cols, s.Heads, s.ValLen)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				r.Rows.Run = true
				run := func(row, n int, to span) error {
					b := a
					b.Q, b.Dst, b.QStride, b.DstStride = at+uint64(4*row*cols), j.addr(to), uint32(cols), uint32(cols)
					b.Seen, b.Seq, b.Rows = a.Seen+uint64(8*row), a.Seq+uint64(4*row), uint32(n)
					return kernels.FlashAttn(r, t, b)
				}
				return runAlike(r, numbers, of, places, alone, run)
			}
			return nil
		},
	}
}

// ClassMulMatID tests that products of rows of one role with the matrices of their experts have the same bits, whether the rows are multiplied together, in
// several numbers, or alone.
func ClassMulMatID(t gguf.Type, role kernels.Role, m, k int) Case {
	const used, experts = 2, 5
	return Case{
		Kernel: typed("mul_mat_id", t), Shape: fmt.Sprintf("class %s M=%d K=%d", className(role), m, k), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			numbers, of, places, alone := alike(j, role, used*m)
			rows := numbers[len(numbers)-1]
			table, _, err := newExpertWeights(j, t, IDShape{M: m, K: k, Rows: rows, Used: used, Experts: experts})
			if err != nil {
				return err
			}
			x, ids := j.normal(rows, k, 0), chosenExperts(j, rows, used, experts)
			at, chosen := j.addr(j.mat(x)), j.addr(j.uint32s(ids))
			pairs, tiles := j.alloc(4*rows*used), j.alloc(int(16*shaders.ExpertTiles(uint32(rows*used), experts, shaders.ExpertCols)))
			j.spare = append(j.spare, pairs, tiles)
			prepare := roleMemory(j, role, rows*used, k, 1, 8)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				run := func(row, n int, to span) error {
					a := shaders.MulMatIDArgs{
						Table: table, X: at + uint64(4*row*k), Dst: j.addr(to), IDs: chosen + uint64(4*row*used), M: uint32(m), K: uint32(k),
						Count: uint32(n * used), Used: used, XStride: uint32(k), DstStride: uint32(m), Last: experts,
					}
					if kernels.SortsPairs(r, uint32(n)) {
						a.Pairs, a.Tiles = j.addr(pairs), j.addr(tiles)
					}
					return kernels.MulMatID(r, t, a, experts)
				}
				return runAlike(r, numbers, of, places, alone, run)
			}
			return nil
		},
	}
}
