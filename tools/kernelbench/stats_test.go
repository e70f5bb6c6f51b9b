package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"leat/internal/kernels"
	"leat/vk"
	"leat/vk/vktest"
)

// Each pipeline has a line, once, whatever its driver says.
func TestStats(t *testing.T) {
	vktest.Open(t)
	var out, errw bytes.Buffer
	folder := filepath.Join(t.TempDir(), "ir")
	args := []string{"-kernels", "quantize_q8,mul_mat_vec_int8,quantize_q8", "-types", "q8_0", "-shapes", "256x512", "-memory", "1", "-count", "1", "-stats", "-ir", folder}
	if code := run(t.Context(), args, &out, &errw); code != 0 {
		t.Fatalf("exit %d: %s", code, &errw)
	}
	for _, want := range []string{`# quantize_q8: (the driver does not say|\S+=\S+)`, `# mul_mat_vec_(longs|int8)_q8_0 LANES=\d+ .*: (the driver does not say|\S+=\S+)`} {
		if n := len(regexp.MustCompile("(?m)^"+want).FindAllString(out.String(), -1)); n != 1 {
			t.Errorf("%d lines as %q, want 1, in\n%s", n, want, &out)
		}
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}

func TestStatLines(t *testing.T) {
	b := kernels.Pipeline{Name: "probe_f16", Spec: "LANES=64 GROUP=2"}
	list := []vk.Executable{{SubgroupSize: 32, Statistics: []vk.Statistic{{Name: "Register Count", Value: "168"}, {Name: "Local Memory Size", Value: "0"}}, Texts: []vk.Text{{Name: "SASS/1", Data: []byte("RET;")}}}}
	if got, want := statLines(b, list), []string{"# probe_f16 LANES=64 GROUP=2: subgroup=32 Register_Count=168 Local_Memory_Size=0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	folder := t.TempDir()
	if err := keepTexts(folder, b, list); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "probe_f16-LANES=64-GROUP=2-0.0-SASS-1.txt")); err != nil || string(got) != "RET;" {
		t.Errorf("%q, %v, want what the driver said", got, err)
	}
}
