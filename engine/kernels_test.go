package engine_test

import (
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

// Where kernels are broken others take their place: the answer is as right, and where none but the plain ones are left it
// has their bits.
func TestBrokenKernels(t *testing.T) {
	alone(t)
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	ref := readReference(t, strings.TrimSuffix(path, ".gguf"))
	o := setup(engine.Options{KVType: "f16", ContextLength: 128, Tuning: engine.Tuning{Chunk: 8}, CacheDir: t.TempDir()})
	plain := logits(t, load(t, path, exact(o)), ref.Tokens)
	plainKernels, err := kernels.New(vktest.Open(t), kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const width = 256
	q4, q6 := "mul_mat_vec_"+plainKernels.TeamVariant(gguf.Q4_K, width)+"_q4_k", "mul_mat_vec_"+plainKernels.TeamVariant(gguf.Q6_K, width)+"_q6_k"
	plainKernels.Close()
	wrong := func(names ...string) engine.Setup {
		return engine.WithKernels(o, func(g *kernels.Options) {
			g.Alter = func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
				if slices.Contains(names, row.Name) {
					other := "mul_mat_vec_int8_q5_k"
					switch row.Name {
					case "rms_norm_q8":
						return row.SPIRV, []uint32{spec[0] / 2, spec[1]}
					case "flash_attn_joined_f16":
						other = "flash_attn_split_f16" // nobody joins the parts
					case "flash_attn_split_f16":
						other = "flash_attn_split_q8_0"
					}
					k, _ := shaders.Lookup(other)
					return k.SPIRV, spec
				}
				return row.SPIRV, spec
			}
		})
	}
	for i, c := range []struct {
		name   string
		broken []string
	}{
		{"products", []string{q4}},
		{"norms", []string{"rms_norm_q8"}},
		{"joins", []string{"flash_attn_joined_f16"}},
		{"attention", []string{"flash_attn_joined_f16", "flash_attn_split_f16"}},
		{"two", []string{q6, "rms_norm_q8"}},
	} {
		if !oneIn(3, i) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, run := range []string{"first", "next"} {
				o := wrong(c.broken...)
				o.CacheDir = filepath.Join(o.CacheDir, c.name)
				log := logged(&o, slog.LevelInfo)
				m, err := engine.LoadSetup(t.Context(), path, o)
				if errors.Is(err, engine.ErrNoDevice) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				got := logits(t, m, ref.Tokens)
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				if nmse := math.Pow(relativeError(got, plain), 2); !(nmse <= nmseBytes) {
					t.Errorf("%s run: NMSE %.2e, wanted at most %.0e", run, nmse, nmseBytes)
				}
				for _, kernel := range c.broken {
					if said := strings.Contains(log.String(), "failed its test") && strings.Contains(log.String(), kernel); said != (run == "first") {
						t.Errorf("%s run: of %s the log says %v:\n%s", run, kernel, said, log)
					}
				}
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		o := engine.WithKernels(o, func(g *kernels.Options) {
			g.Cache = nil
			g.Test = func(_ *kernels.Kernels, v kernels.Variant) error { return errors.New("broken for this test") }
		})
		if got := logits(t, load(t, path, o), ref.Tokens); !slices.Equal(got, plain) {
			t.Errorf("without any variant logits differ from the plain kernels': relative error %.2e", relativeError(got, plain))
		}
	})
}
