package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"

	"leat/engine"
	"leat/internal/kernels"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk"
	"leat/vk/vktest"
)

// What the process of TestDriverCrashes that plays a crash finds in its environment.
const (
	crashKernel = "LEAT_TEST_CRASH_KERNEL" // dies as it is compiled
	crashHow    = "LEAT_TEST_CRASH_HOW"
	crashFolder = "LEAT_TEST_CRASH_FOLDER" // CacheDir
)

// dies ends the process as drivers do.
func dies(how string) {
	if how == "crash" {
		purego.SyscallN(1) // code at address 1: a signal in C
	}
	os.Exit(3)
}

// TestCrashingProcess is the process that TestDriverCrashes starts.
func TestCrashingProcess(t *testing.T) {
	kernel, folder := os.Getenv(crashKernel), os.Getenv(crashFolder)
	if folder == "" {
		t.Skip("TestDriverCrashes starts it")
	}
	kernels.NoteCrashes(cache.Open(folder))
	o := setup(engine.Options{ContextLength: 64, CacheDir: folder, Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	o = engine.WithKernels(o, func(g *kernels.Options) {
		g.Alter = func(row *shaders.Kernel, spec []uint32) ([]byte, []uint32) {
			if row.Name == kernel {
				dies(os.Getenv(crashHow))
			}
			return row.SPIRV, spec
		}
	})
	m := load(t, filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf"), o)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text string
	for tok, err := range s.Generate(t.Context(), m.Encode("Once upon a time", true), engine.Params{MaxTokens: 6}) {
		if err != nil {
			var hint interface{ Hint() string }
			if errors.As(err, &hint) {
				err = fmt.Errorf("%w; hint: %s", err, hint.Hint())
			}
			t.Fatalf("generate: %v", err)
		}
		text += tok.Text
	}
	fmt.Printf("text: %q\n", text)
}

// A driver that ends the process as it compiles a kernel does so once: later runs do without that kernel, to the same text,
// or say which it is that they can't do without.
func TestDriverCrashes(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	start := func(folder, kernel, how string) (out string, died bool) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashingProcess$", "-test.v")
		cmd.Env = append(os.Environ(), crashKernel+"="+kernel, crashHow+"="+how, crashFolder+"="+folder)
		text, err := cmd.CombinedOutput()
		return string(text), err != nil
	}
	whole := t.TempDir()
	right, died := start(whole, "", "")
	_, right, ok := strings.Cut(right, "text: ")
	if died || !ok {
		t.Fatalf("without a crash: %s", right)
	}
	right, _, _ = strings.Cut(right, "\n")
	type run struct {
		dies, says, fails bool
	}
	for name, c := range map[string]struct {
		kernel, how string
		runs        []run
	}{
		"in C":              {"rms_norm_q8", "crash", []run{{dies: true}, {says: true}, {}}},
		"by an exit":        {"rms_norm_q8", "exit", []run{{dies: true}, {says: true}}},
		"without stand-ins": {"get_rows_q6_k", "crash", []run{{dies: true}, {says: true, fails: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for i, r := range c.runs {
				out, died := start(folder, c.kernel, c.how)
				switch {
				case died != (r.dies || r.fails):
					t.Fatalf("run %d died: %v\n%s", i, died, out)
				case r.dies:
					continue
				case r.fails:
					if !strings.Contains(out, "build kernel "+c.kernel) || !strings.Contains(out, "the driver crashed as it compiled this kernel (SIG") || !strings.Contains(out, "hint: update the driver") {
						t.Errorf("run %d: its error does not say what crashed:\n%s", i, out)
					}
				case !strings.Contains(out, "text: "+right+"\n"):
					t.Errorf("run %d: another text than %s:\n%s", i, right, out)
				}
				if said := strings.Count(out, "level=WARN"); (said == 1) != r.says || said > 1 || r.says && !strings.Contains(out, "kernel="+c.kernel) {
					t.Errorf("run %d: %d warnings:\n%s", i, said, out)
				}
			}
			if err := kernels.Retry(cache.Open(folder), device(t)); err != nil {
				t.Fatal(err)
			}
			if out, died := start(folder, c.kernel, c.how); !died || strings.Contains(out, "text: ") {
				t.Errorf("after Retry the kernel is not compiled: %s", out)
			}
		})
	}
}

func device(t *testing.T) *vk.PhysicalDevice {
	t.Helper()
	p, err := vktest.Instance(t).Pick("")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
