package conform

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"leat/internal/kernels"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

var (
	seed = flag.Uint64("seed", 0, "seed of the random data; 0: a fresh one")
	// inParts has TestConform and TestQuickDisabled run one of so many cases, by turns that the seed begins, and of rare types' a fifth of these; TestQuick
	// then runs a tenth of the kernels of rare types. It comes from the environment, not from a flag, so that one go test runs this package beside others.
	inParts = testdata.Parts("LEAT_CONFORM_PARTS")
)

// freshSeed is the seed that was asked for, or another one each time.
func freshSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return rand.Uint64()
}

// rare reports whether a case is about a kernel of a rare type of weights.
func rare(c *selftest.Case) bool {
	k, ok := shaders.Lookup(c.Kernel)
	return ok && k.Typed && slices.Contains(shaders.RareTypes, k.Type)
}

// parts leaves of the cases those that are their turn by LEAT_CONFORM_PARTS, and of those with a tile of their own, each of which is a
// pipeline to compile, a fifth, or all with -combinations; of those of rare types a fifth, too, unless all are to run.
func parts(cases []selftest.Case, turn uint64) []selftest.Case {
	n := uint64(0)
	return slices.DeleteFunc(slices.Clone(cases), func(c selftest.Case) bool {
		n++
		every := uint64(inParts)
		if strings.Contains(c.Shape, " tile=") && !*combinations {
			every *= 5
		} else if every > 1 && rare(&c) {
			every *= 5
		}
		return (turn+n)%every != 0
	})
}

// openRunner opens a runner on the tests' device, and the kernels that its cases run by.
func openRunner(t testing.TB, n uint64, options ...vktest.Option) (*selftest.Runner, *kernels.Kernels) {
	t.Helper()
	dev := vktest.Open(t, options...)
	k, err := kernels.New(dev, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	t.Logf("device %s (%s), -seed %d", dev.Physical.Name, dev.Physical.DriverInfo, n)
	s, err := selftest.New(dev, k, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, k
}

// byKernel sorts cases by their kernel, and says in which order those came.
func byKernel(cases []selftest.Case) (by map[string][]selftest.Case, order []string) {
	by = map[string][]selftest.Case{}
	for _, c := range cases {
		if by[c.Kernel] == nil {
			order = append(order, c.Kernel)
		}
		by[c.Kernel] = append(by[c.Kernel], c)
	}
	return by, order
}

func runCases(t *testing.T, s *selftest.Runner, cases []selftest.Case, passed func(selftest.Result)) {
	t.Helper()
	for i := range cases {
		r, err := run(t.Context(), s, &cases[i])
		if err != nil {
			t.Error(err)
			continue
		}
		passed(r)
	}
}

// runners is a pool of Runners, one for each processor but at most four, which tests of a kernel borrow: a driver compiles a kernel in one thread,
// so several at once take half the time and less.
type runners struct {
	free chan *selftest.Runner

	mu  sync.Mutex
	sum Summary
}

func newRunners(t *testing.T, seed uint64, options ...vktest.Option) *runners {
	t.Helper()
	n := min(runtime.GOMAXPROCS(0), 4)
	p := &runners{free: make(chan *selftest.Runner, n)}
	for range n {
		r, _ := openRunner(t, seed, options...)
		p.free <- r
	}
	return p
}

// can says whether the device can run a case.
func (p *runners) can(c *selftest.Case) bool {
	s := <-p.free
	defer func() { p.free <- s }()
	return s.Can(c)
}

// run runs cases of one kernel in a test that is parallel to those of other kernels.
func (p *runners) run(t *testing.T, cases []selftest.Case) {
	t.Parallel()
	s := <-p.free
	defer func() { p.free <- s }()
	runCases(t, s, cases, func(r selftest.Result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum.Add(r)
	})
}

// print ends a test with the table of what ran, once all of it has.
func (p *runners) print(t *testing.T) {
	t.Cleanup(func() {
		var table strings.Builder
		if err := p.sum.Print(&table); err != nil {
			t.Error(err)
		}
		t.Logf("\n%s", &table)
	})
}

// TestConform runs every case, see [parts]; with -v it ends with a table. One kernel: -run '/mul_mat_q4_k$', for cases run in tests
// of the second level alone.
func TestConform(t *testing.T) {
	n := freshSeed()
	s := newRunners(t, n)
	s.print(t)
	cases, order := byKernel(parts(Cases(), n))
	for _, kernel := range order {
		t.Run(kernel, func(t *testing.T) {
			if !s.can(&cases[kernel][0]) {
				t.Skip("the device lacks what it needs")
			}
			s.run(t, cases[kernel])
		})
	}
}

// Every row of the table has cases, and each quick one is among them.
func TestCasesCoverTable(t *testing.T) {
	seen := map[string]int{}
	names := map[string]bool{}
	for _, c := range Cases() {
		seen[c.Kernel]++
		if names[c.String()] {
			t.Errorf("two cases are called %s", &c)
		}
		names[c.String()] = true
	}
	for _, k := range shaders.Kernels() {
		if seen[k.Name] == 0 {
			t.Errorf("kernel %s has no case", k.Name)
		}
		delete(seen, k.Name)
	}
	for _, c := range selftest.Quick() {
		if !names[c.String()] {
			t.Errorf("%s is a quick case, and none of the suite", &c)
		}
	}
	for name := range seen {
		t.Errorf("cases are about kernel %s, which the table lacks", name)
	}
}
