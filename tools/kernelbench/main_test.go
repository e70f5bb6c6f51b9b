package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"leat/internal/kernels"
	"leat/vk/vktest"
)

// Each kernel runs, its lines are benchstat's, and each tile is in the summary.
func TestRun(t *testing.T) {
	vktest.Open(t) // skips where there is none
	var out, errw bytes.Buffer
	code := run(t.Context(), []string{"-kernels", strings.Join(kernelNames(), ","), "-types", "q8_0,f16", "-shapes", "256x512", "-memory", "1", "-count", "1", "-team", "8,64", "-unroll", "1"}, &out, &errw)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, &errw)
	}
	line := regexp.MustCompile(`^Benchmark\S+ \d+ [\d.]+ ns/op [\d.]+ GB/s( [\d.]+ %read( [\d.]+ TFLOP/s)?)?$`)
	seen := map[string]int{}
	for l := range strings.Lines(out.String()) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "Benchmark") {
			if !line.MatchString(l) {
				t.Errorf("benchstat would not read %q", l)
			}
			name, _, _ := strings.Cut(l, " ")
			seen[name]++
		}
	}
	for _, want := range []string{"BenchmarkRead", "BenchmarkMulMatVec/type=Q8_0/shape=256x512/n=1", "BenchmarkMulMatVec/type=F16/shape=256x512/n=1",
		"BenchmarkMulMatVecInt8/type=Q8_0/shape=256x512/n=1/tile=0x8x1x0", "BenchmarkMulMatVecInt8Gates/type=Q8_0/shape=256x512/n=1/tile=0x8x1x0",
		"BenchmarkMulMat/type=Q8_0/shape=256x512/n=1", "BenchmarkLayer/type=Q8_0/shape=256x512/n=1/tile=0x8x1x0",
		"BenchmarkMulMatVecWide/type=F16/shape=256x512/n=1/tile=0x64x1x0", "BenchmarkRmsNorm/shape=256x512/n=1"} {
		if seen[want] == 0 {
			t.Errorf("no line of %s in\n%s", want, &out)
		}
	}
	if !regexp.MustCompile(`(?m)^# BenchmarkMulMatVecInt8/type=Q8_0/\S+ .*0x8x1x0 .*%`).MatchString(out.String()) {
		t.Errorf("no summary of the tiles in\n%s", &out)
	}
}

// What a kernel cannot take is passed over, and said.
func TestPassedOver(t *testing.T) {
	vktest.Open(t)
	var out, errw bytes.Buffer
	if code := run(t.Context(), []string{"-kernels", "mul_mat_vec_int8", "-types", "q4_k", "-shapes", "8x32,8192x4096", "-memory", "1", "-count", "1"}, &out, &errw); code != 0 {
		t.Fatalf("exit %d: %s", code, &errw)
	}
	for _, want := range []string{"K is 32, want a multiple of 256", "18 MiB of weights, want -memory to be more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// Phases that did not all run have no time: a driver that ends loops leaves no flag, only fewer arrivals.
func TestGridChecks(t *testing.T) {
	g := grid{groups: 2, phases: 4}
	whole := func() []byte {
		b := make([]byte, gridHead+8*g.groups)
		b[gridArrived] = 6
		for i := range 4 {
			b[gridHead+4*i] = byte((2 + i/2) << 1)
		}
		return b
	}
	for _, c := range []struct {
		at   int
		to   byte
		want string
	}{{8, 0, ""}, {0, 1, "missed what another"}, {gridArrived, 3, "3 arrivals at the barrier, want 6"}, {gridHead + 12, 2 << 1, "workgroup 1 ended in phase 2, want 3"}} {
		b := whole()
		b[c.at] = c.to
		err := g.check(b, false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("byte %d is %d: error %v, want %q", c.at, c.to, err, c.want)
		}
	}
}

// One workgroup waits for nobody: that is all that a software device surely runs.
func TestGrid(t *testing.T) {
	vktest.Open(t)
	var out, errw bytes.Buffer
	if code := run(t.Context(), strings.Fields("-kernels add -types q8_0 -shapes 8x32 -memory 1 -count 1 -grid 1 -grid-phases 8"), &out, &errw); code != 0 {
		t.Fatalf("exit %d: %s", code, &errw)
	}
	for _, want := range []string{"BenchmarkGridBarrier/groups=1/kib=0 8 ", "BenchmarkDispatchBarrier/groups=1/kib=0 8 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-kernels mul_mat_vek", `kernel: found "mul_mat_vek"`},
		{"-types q9", `no kernel takes "q9"`},
		{"-shapes 4096", `shape: found "4096", wanted one as 4096x14336`},
		{"-shapes 0x32", `found "0x32"`},
		{"-split 128x128", `-split: found "128x128", wanted one as 128x64x64x32`},
		{"-split 128x128x64x64x32", `found "128x128x64x64x32"`},
		{"-rows -1", `found "-1", wanted a number`},
		{"-count 0", "-count of at least 1"},
		{"extra", "want flags alone"},
	} {
		var out, errw bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), &out, &errw); code != 2 || !strings.Contains(errw.String(), c.want) {
			t.Errorf("%s: exit %d, %q; want 2 and %q", c.args, code, &errw, c.want)
		}
	}
	for _, text := range []string{"", "128x64x64x32", "128x128x64x64x32x2h", "128x128x64x64x64x1w", "128x128x64x64x32x2hw"} {
		s, err := parseSplit(text)
		if err != nil || s != (kernels.CMTile{}) && s.String() != text {
			t.Errorf("-split %q: %v, error %v", text, s, err)
		}
	}
	for _, shapes := range []string{gpuShapes, cpuShapes} {
		if _, err := list(shapes, parseShape); err != nil {
			t.Error(err)
		}
	}
}
