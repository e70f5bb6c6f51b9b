package conform

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"leat/internal/selftest"
	"leat/vk/vktest"
)

var listRan = flag.Bool("ran", false, "print each kernel of which a case ran")

// ran has the kernels of which a case ran.
var ran sync.Map

// run runs a case and notes that it did.
func run(ctx context.Context, r *selftest.Runner, c *selftest.Case) (selftest.Result, error) {
	ran.Store(c.Kernel, true)
	return r.Run(ctx, c)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *listRan {
		ran.Range(func(name, _ any) bool {
			fmt.Println("ran", name)
			return true
		})
	}
	os.Exit(code)
}

// -run '/NAME$' runs the cases of that kernel alone: cases run only in tests of the second level, which have its name or quite
// another one.
func TestOneKernelAlone(t *testing.T) {
	vktest.Instance(t)
	for name, c := range map[string]struct{ run, want string }{
		"a kernel":        {"/sigmoid_mul$", "ran sigmoid_mul"},
		"what is no name": {"/no_such_kernel$", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(os.Args[0], "-test.run", c.run, "-ran").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(string(out), "\n")
			got := strings.Join(slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "ran ") }), "\n")
			if got != c.want {
				t.Errorf("-run %s: %q, want %q:\n%s", c.run, got, c.want, out)
			}
		})
	}
}
