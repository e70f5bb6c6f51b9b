package conform

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

var (
	seed = flag.Uint64("seed", 0, "seed of the random data; 0: a fresh one")
	// inParts has TestConform and TestQuickDisabled run one of so many cases, by turns that the seed begins. It comes from the environment, not from a flag, so that one go test runs this package beside others.
	inParts = testdata.Parts("LEAT_CONFORM_PARTS")
)

// freshSeed is the seed that was asked for, or another one each time.
func freshSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return rand.Uint64()
}

// parts leaves of the cases those that are their turn by LEAT_CONFORM_PARTS, and of those with a tile of their own, each of which is a
// pipeline to compile, a fifth, or all with -combinations.
func parts(cases []Case, turn uint64) []Case {
	n := uint64(0)
	return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool {
		n++
		every := uint64(inParts)
		if strings.Contains(c.Shape, " tile=") && !*combinations {
			every *= 5
		}
		return (turn+n)%every != 0
	})
}

func newSuite(t testing.TB, n uint64, options ...vktest.Option) *Suite {
	t.Helper()
	dev := vktest.Open(t, options...)
	k, err := kernels.New(dev, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	t.Logf("device %s (%s), -seed %d", dev.Physical.Name, dev.Physical.DriverInfo, n)
	s, err := New(dev, k, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// byKernel sorts cases by their kernel, and says in which order those came.
func byKernel(cases []Case) (by map[string][]Case, order []string) {
	by = map[string][]Case{}
	for _, c := range cases {
		if by[c.Kernel] == nil {
			order = append(order, c.Kernel)
		}
		by[c.Kernel] = append(by[c.Kernel], c)
	}
	return by, order
}

func runCases(t *testing.T, s *Suite, cases []Case, passed func(Result)) {
	t.Helper()
	for i := range cases {
		r, err := s.Run(t.Context(), &cases[i])
		if err != nil {
			t.Error(err)
			continue
		}
		passed(r)
	}
}

// suites is a pool of Suites, one for each processor but at most four, which tests of a kernel borrow: a driver compiles a kernel in one thread,
// so several at once take half the time and less.
type suites struct {
	free chan *Suite

	mu  sync.Mutex
	sum Summary
}

func newSuites(t *testing.T, seed uint64, options ...vktest.Option) *suites {
	t.Helper()
	n := min(runtime.GOMAXPROCS(0), 4)
	p := &suites{free: make(chan *Suite, n)}
	for range n {
		p.free <- newSuite(t, seed, options...)
	}
	return p
}

// can says whether the device can run a case.
func (p *suites) can(c *Case) bool {
	s := <-p.free
	defer func() { p.free <- s }()
	return s.Can(c)
}

// run runs cases of one kernel in a test that is parallel to those of other kernels.
func (p *suites) run(t *testing.T, cases []Case) {
	t.Parallel()
	s := <-p.free
	defer func() { p.free <- s }()
	runCases(t, s, cases, func(r Result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum.Add(r)
	})
}

// print ends a test with the table of what ran, once all of it has.
func (p *suites) print(t *testing.T) {
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
	s := newSuites(t, n)
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

// Every row of the table has cases.
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
	for name := range seen {
		t.Errorf("cases are about kernel %s, which the table lacks", name)
	}
}

// What a broken kernel would leave behind is reported, each kind of it.
func TestSuiteCanFail(t *testing.T) {
	s := newSuite(t, 1) // one seed: some of the errors below are small
	find := func(name string) *Case {
		for _, c := range Cases() {
			if strings.HasPrefix(c.String(), name) {
				return &c
			}
		}
		t.Fatalf("no case %s", name)
		return nil
	}
	for _, c := range []struct {
		name, on, want string
		tamper         func(j *job, got []byte)
	}{
		{"wrong value", "mul_mat_vec_q4_k/M=64 K=256", "NMSE of dst", func(j *job, got []byte) { got[j.wants[0].at.off+3] ^= 0x80 }},
		{"imprecise value", "mul_mat_vec_q4_k/M=64 K=256", "NMSE of dst", func(j *job, got []byte) { got[j.wants[0].at.off+2] ^= 1 }},
		{"never written", "mul_mat_q8_0/M=100 K=256 N=9", "dst[0][1] is NaN", func(j *job, got []byte) {
			copy(got[j.wants[0].at.off+4:], []byte{0xc1, 0x7f, 0xc1, 0x7f})
		}},
		{"past the end", "swiglu/count=65", "which is no output", func(j *job, got []byte) { got[j.wants[0].at.off+j.wants[0].at.n]++ }},
		{"gap of a stride", "rms_norm/rows=5 cols=64 gap=3", "which is no output", func(j *job, got []byte) { got[j.wants[0].at.off+4*64]++ }},
		{"input changed", "add/count=65 cols=65", "which is no output", func(j *job, got []byte) { got[guardBytes+20]++ }},
		{"one bit", "get_rows_q6_k/rows=5", "dst[0][0] is", func(j *job, got []byte) { got[j.wants[0].at.off] ^= 1 }},
		{"rounding of the cache", "kv_append_f16", "of page 0", func(j *job, got []byte) { got[j.wants[0].at.off+48] ^= 1 }},
		{"wrong column", "argmax/ties", "of dst", func(j *job, got []byte) { got[j.wants[0].at.off]++ }},
		{"batch differs from rows", "flash_attn_f16/same bits", "the same bits", func(j *job, got []byte) { got[j.twins[0][0].at.off] ^= 1 }},
		{"second run differs", "soft_max/rows=3 cols=64", "of a second run", func(j *job, got []byte) { got[j.wants[0].at.off] ^= 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.tamper = c.tamper
			defer func() { s.tamper = nil }()
			_, err := s.Run(t.Context(), find(c.on))
			var miss *MismatchError
			if !errors.As(err, &miss) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want a mismatch with %q", err, c.want)
			}
			s.tamper = nil
			if _, err := s.Run(t.Context(), find(c.on)); err != nil {
				t.Errorf("untampered: %v", err)
			}
		})
	}
	t.Run("wrong reference", func(t *testing.T) {
		c := *find("rope/rows=5 heads=3 head=64")
		build := c.build
		c.build = func(j *job) error {
			err := build(j)
			x := j.wants[0].mat
			x.Row(1)[0], x.Row(1)[1] = x.Row(1)[1], x.Row(1)[0]
			return err
		}
		if _, err := s.Run(context.Background(), &c); err == nil {
			t.Error("a pair rotated the wrong way went through")
		}
	})
}
