package conform

import (
	"testing"

	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
)

// Whatever is tuned, a row's results don't depend on how many others there are; those of the fp32 kernels not on what is tuned either: alone
// and together they have different constants, and one value.
func TestTunedBits(t *testing.T) {
	s, all := openRunner(t, 1)
	key := kernels.TableKey(all.Device())
	for name, tuned := range map[string]kernels.Tuned{
		"own":   {},
		"small": {Outputs: []kernels.TunedOutputs{{Op: "mul_mat_vec", Type: "Q4_K", Rows: 1}, {Op: "mul_mat", Type: "Q4_K", Rows: 2, Cols: 32}}},
		"large": {
			Products: []kernels.TunedProduct{{Type: "Q4_K", K: 1024, Tile: kernels.Tile{Rows: 2, Team: 32, Unroll: 2, Lanes: 64}}, {Type: "F16", K: 1024, Tile: kernels.Tile{Rows: 1, Team: 16, Unroll: 4, Lanes: 32}}},
			Outputs:  []kernels.TunedOutputs{{Op: "mul_mat_vec", Type: "Q4_K", Rows: 8}, {Op: "mul_mat", Type: "Q4_K", Rows: 16, Cols: 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tuned.Kernels = key
			if err := all.Use(&tuned); err != nil {
				t.Fatal(err)
			}
			var cases []selftest.Case
			for _, row := range []string{"mul_mat_vec_int8_q4_k", "mul_mat_vec_wide_f16"} {
				k, ok := shaders.Lookup(row)
				if !ok {
					t.Fatal(row)
				}
				if all.CanRun(k) {
					cases = append(cases, selftest.VecSameBits(k, 33, 1024), selftest.Vec(k, 65, 1024, 8, 0, kernels.Tile{}))
				}
			}
			k, _ := shaders.Lookup("mul_mat_q4_k")
			cases = append(cases, selftest.MulMatSameBits(k.Type, 37, 1024), selftest.MulMat(k.Type, 37, 1024, 3, 0), selftest.MulMat(k.Type, 37, 1024, 20, 0))
			for i := range cases {
				if _, err := run(t.Context(), s, &cases[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
