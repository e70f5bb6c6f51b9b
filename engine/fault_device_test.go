package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/await"
	"leat/tools/testdata"
	"leat/vk"
)

// failing is a fault of Vulkan: the n-th of some calls fails, and with lasting all after it.
type failing struct {
	result  vk.Result
	lasting bool
	calls   func(call string) bool // which are counted, and fail

	mu   sync.Mutex
	n    int // of the call that fails, from 1; 0: none
	seen int
	hit  string // the call that failed first
}

func (f *failing) fault(call string) vk.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.calls(call) {
		return 0
	}
	f.seen++
	if f.n == 0 || f.seen < f.n || f.seen > f.n && !f.lasting {
		return 0
	}
	if f.hit == "" {
		f.hit = call
	}
	return f.result
}

// outcome is how one life of a model went: load, prefill, decode, close.
type outcome struct {
	stage  string // in which the error came
	err    error
	again  error // of a step after it
	closed error
	log    string
	ids    []token.ID
}

// live loads the demo model, generates, and closes it, with the calls failing as f says.
func live(t *testing.T, o engine.Setup, f *failing) (r outcome) {
	t.Helper()
	var log bytes.Buffer
	var mu sync.Mutex
	o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			r.log = log.String()
		}()
		m, err := engine.LoadSetup(t.Context(), testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", engine.WithDeviceFault(o, f.fault))
		if err != nil {
			r.stage, r.err = "load", err
			return
		}
		defer func() {
			if r.closed = m.Close(); r.closed != nil && r.err == nil {
				r.stage, r.err = "close", r.closed
			}
		}()
		s, err := m.NewSession()
		if err != nil {
			r.stage, r.err = "session", err
			return
		}
		defer s.Close()
		prompt := m.Encode("Once upon a time", true)
		for tok, err := range s.Generate(t.Context(), prompt, engine.Params{MaxTokens: 4, IgnoreEOG: true}) {
			if err != nil {
				if r.stage, r.err = "decode", err; len(r.ids) == 0 {
					r.stage = "prefill"
				}
				break // a session whose sequence is being ranged over is busy
			}
			r.ids = append(r.ids, tok.ID)
		}
		if r.err != nil {
			_, r.again = s.Forward(t.Context(), prompt[:1])
		}
	}()
	await.Receive(t, "the model's end", done)
	return r
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// ways are tier mixes of the demo model.
func ways(t *testing.T) map[string]engine.Setup {
	t.Helper()
	o := setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 4}, HostBytes: 1, DeviceBytes: 1})
	_, err := engine.LoadSetup(t.Context(), testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", o)
	if errors.Is(err, engine.ErrNoDevice) && os.Getenv("LEAT_REQUIRE_DEVICE") != "1" {
		t.Skipf("no Vulkan device: %v", err)
	}
	least := budgetNeed(t, err)
	whole, disk, host := o, o, o
	whole.DeviceBytes, disk.DeviceBytes, host.DeviceBytes = 64<<20, least+1<<20, least+1<<19
	host.HostBytes = 3 << 20
	return map[string]engine.Setup{"resident": whole, "disk": disk, "host and disk": engine.WithLanes(host, 2)}
}

// atMoments runs f's faults at moments from the first counted call to the last.
func atMoments(t *testing.T, f func() *failing, check func(t *testing.T, f *failing, r outcome)) {
	if os.Getenv("LEAT_VALIDATE") == "1" {
		t.Skip("the validation layers would not be told of what is simulated")
	}
	all := ways(t)
	calls, wants := map[string]int{}, map[string]outcome{}
	for name, o := range all {
		clean := f()
		if wants[name] = live(t, o, clean); wants[name].err != nil {
			t.Fatalf("%s: without a fault: %v", name, wants[name].err)
		}
		calls[name] = clean.seen
	}
	// What the driver keeps for good is there by now.
	base, handles := runtime.NumGoroutine(), openHandles()
	lives := func() {
		for name, o := range all {
			stages := map[string]int{}
			for _, n := range moments(calls[name]) {
				x := f()
				x.n = n
				r := live(t, o, x)
				stages[r.stage]++
				if want := wants[name]; r.err == nil && !slices.Equal(r.ids, want.ids) {
					t.Errorf("%s, call %d (%s): no error, but tokens %v, wanted %v", name, n, x.hit, r.ids, want.ids)
				}
				if strings.Contains(r.log, "left open") || r.closed != nil && strings.Contains(r.closed.Error(), "left open") {
					t.Errorf("%s, call %d (%s): left open: %v %s", name, n, x.hit, r.closed, r.log)
				}
				if t.Failed() {
					return
				}
				check(t, x, r)
			}
			t.Logf("%s: %d calls; failed in %v", name, calls[name], stages)
		}
	}
	grown := growth(lives)
	if grown > maxGrown && !testing.Short() && !t.Failed() { // by what the driver keeps, or by what each life leaves: then as much again
		t.Logf("%+d KiB resident: once more", grown>>10)
		if grown = growth(lives); grown > maxGrown {
			t.Errorf("%d bytes more are resident, again", grown)
		}
	}
	t.Logf("%+d KiB resident", grown>>10)
	await.Goroutines(t, base)
	if n := openHandles(); n > handles {
		t.Errorf("%d files are open, %d were before", n, handles)
	}
}

// maxGrown is below what the weights, were they left by each of a test's lives, would add
// up to. Without any fault lavapipe grows by some 100 MiB in as many lives, then no more.
const maxGrown = 160 << 20

// growth is by how much what is resident grows while f runs.
func growth(f func()) int64 {
	before := residentBytes()
	f()
	return residentBytes() - before
}

// residentBytes is what this process has in RAM that is nobody's file; 0 where the system
// does not tell.
func residentBytes() int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kib << 10
}

// moments are numbers of calls: the first ones, the last ones, and some between.
func moments(all int) (list []int) {
	steps := 5
	switch {
	case *combinations:
		steps = 16
	case testing.Short():
		steps = 2
	case engineParts > 1:
		steps = 3
	}
	for i := range steps + 1 {
		list = append(list, 1+i*(all-1)/steps)
	}
	for i := range min(all, steps/3) {
		list = append(list, 1+i, all-i)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// openHandles counts this process's open files; 0 where the system does not tell.
func openHandles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

func hinted(err error) bool {
	var h interface{ Hint() string }
	return errors.As(err, &h) && h.Hint() != ""
}

// TestDeviceLost: a device that is lost at any call (in Load, in prefill, in decode, during
// an upload, in Close) is a typed error; the model is dead, nothing hangs or is left.
func TestDeviceLost(t *testing.T) {
	lost := func() *failing {
		return &failing{result: vk.ErrDeviceLost, lasting: true, calls: func(string) bool { return true }}
	}
	atMoments(t, lost, func(t *testing.T, f *failing, r outcome) {
		if f.hit == "" {
			return // it ran with fewer calls this time
		}
		if r.err != nil && (!errors.Is(r.err, engine.ErrDeviceLost) || !hinted(r.err)) {
			t.Errorf("call %d (%s) in %s: %v, wanted ErrDeviceLost with a hint", f.n, f.hit, r.stage, r.err)
		}
		if r.err == nil && r.closed == nil {
			t.Errorf("call %d (%s): nobody noticed", f.n, f.hit)
		}
		if (r.stage == "prefill" || r.stage == "decode") && !errors.Is(r.again, engine.ErrDeviceLost) {
			t.Errorf("call %d (%s) in %s: the next step ended with %v", f.n, f.hit, r.stage, r.again)
		}
	})
}

// TestOutOfVRAM: whichever allocation fails, once or from then on, the error says so and
// nothing is left; or less was pinned than planned, or a kernel could not be tested, and all goes on.
func TestOutOfVRAM(t *testing.T) {
	alone(t)
	for i, lasting := range []bool{false, true} {
		if !oneIn(2, i) {
			continue
		}
		full := func() *failing {
			return &failing{result: vk.ErrOutOfDeviceMemory, lasting: lasting, calls: func(call string) bool { return call == "vkAllocateMemory" }}
		}
		atMoments(t, full, func(t *testing.T, f *failing, r outcome) {
			if r.err != nil && (!errors.Is(r.err, vk.ErrOutOfDeviceMemory) || !hinted(r.err)) {
				t.Errorf("allocation %d in %s: %v, wanted ErrOutOfDeviceMemory with a hint", f.n, r.stage, r.err)
			}
			if r.err == nil && f.hit != "" && lasting && !strings.Contains(r.log, "host tier") && !strings.Contains(r.log, "failed its test") {
				t.Errorf("allocation %d: nobody noticed: %s", f.n, r.log)
			}
		})
	}
}

// TestOutOfHostMemory: any object that can't be made for want of the driver's own memory.
func TestOutOfHostMemory(t *testing.T) {
	full := func() *failing {
		return &failing{result: vk.ErrOutOfHostMemory, calls: func(call string) bool {
			return strings.HasPrefix(call, "vkCreate") || strings.HasPrefix(call, "vkAllocate") || call == "vkMapMemory" || strings.HasSuffix(call, "CommandBuffer")
		}}
	}
	atMoments(t, full, func(t *testing.T, f *failing, r outcome) {
		if r.err != nil && (!errors.Is(r.err, vk.ErrOutOfHostMemory) || !hinted(r.err)) {
			t.Errorf("call %d (%s) in %s: %v, wanted ErrOutOfHostMemory with a hint", f.n, f.hit, r.stage, r.err)
		}
		if (r.stage == "prefill" || r.stage == "decode") && r.again != nil {
			t.Errorf("call %d (%s) in %s: the next step ended with %v, though its calls succeed", f.n, f.hit, r.stage, r.again)
		}
	})
}
