package kernels

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"leat/shaders"
	"leat/vk"
)

// Variant is a pipeline that is not a plain fp32 one, and what it was made for: those of its row's constants that are
// not for all, see the fields of [shaders.Kernel.Spec]; 0 where there is none.
type Variant struct {
	Row        *shaders.Kernel
	Cols       uint32 // NUM_COLS of a mul_mat_vec: rows of X
	Tile       Tile   // of a mul_mat_vec in teams and topk_moe_routed
	GLU        uint32
	Lanes, Per uint32 // of rms_norm_q8 and topk_moe_held; Per of topk_moe_routed, whose lanes are Tile's
	RowLanes   uint32 // of rope_norm_kv; of topk_moe_routed those of the norm
	Group, Run uint32 // of flash_attn_split
	Turning    Turning
	Split      Split  // of mul_mat_cm
	Key, Val   uint32 // head sizes of flash_attn_cm and flash_attn_split
	Options    uint32 // of flash_attn_cm
	RunSplit   RunSplit
}

// Outputs is how many rows of the output a workgroup of a mul_mat_vec in teams makes.
func (v *Variant) Outputs() uint32 { return v.Tile.outputs(v.GLU) }

// helpers are plain kernels that only other variants use: they are tested like these.
var helpers = []string{"quantize_q8", "tile_f16", "dequant_f16"}

func mustProve(row *shaders.Kernel) bool {
	return row.Variant != shaders.FP32 || slices.Contains(helpers, row.Op)
}

// Replaced reports whether other kernels stand in for one, by its name, where it fails its self-test.
func Replaced(name string) bool {
	row, ok := shaders.Lookup(name)
	return ok && mustProve(row)
}

// tests are the results of self-tests. They are of the pipelines: drivers compile each anew.
type tests struct {
	mu      sync.Mutex
	results map[string]string // by testID; "": passed, else why not
	failed  map[string]string // by the row's name, in use or not: why not
	lost    error             // the device was, in a test
	took    time.Duration
	kept    *store

	failures atomic.Int32 // len(failed)
}

// testID names a pipeline of a row: its code, its constants.
func testID(row *shaders.Kernel, spec []uint32, subgroup int) string {
	sum := sha256.Sum256(row.SPIRV)
	return fmt.Sprintf("%s %v %d %x", row.Name, spec, subgroup, sum[:6])
}

// ofCode reports whether a testID is of the row's present code.
func ofCode(id string, row *shaders.Kernel) bool {
	sum := sha256.Sum256(row.SPIRV)
	return strings.HasSuffix(id, fmt.Sprintf(" %x", sum[:6]))
}

// load takes what earlier runs found, crashed by the name of a row among it. A row of which a pipeline failed is not tried
// again with the same code.
func (t *tests) load(s *store, crashed map[string]string) {
	t.results, t.failed, t.kept = map[string]string{}, map[string]string{}, s
	kept := s.loadTests()
	for id, why := range kept {
		row, ok := shaders.Lookup(nameOf(id))
		if !ok || !ofCode(id, row) {
			continue // of another version of the kernel
		}
		if t.results[id] = why; why != "" {
			t.failed[row.Name] = why
		}
	}
	maps.Copy(t.failed, crashed)
	t.failures.Store(int32(len(t.failed)))
}

func nameOf(id string) string {
	for i := range id {
		if id[i] == ' ' {
			return id[:i]
		}
	}
	return id
}

func (t *tests) broken(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[name] != ""
}

// why says why a row is not used, and whether a pipeline of it has been tested already; the error is that of a device
// that is lost.
func (t *tests) why(name, id string) (failed string, known bool, lost error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known = t.results[id]
	return t.failed[name], known, t.lost
}

// passed and gaveUp note a result, for the next run too.
func (t *tests) passed(id string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took += took
	t.results[id] = ""
	t.kept.grown()
}

// gaveUp notes why a row is not used. What is no fault of the kernel is not kept: that there was no memory to test it with,
// or that another kernel crashed that its test needs.
func (t *tests) gaveUp(name, id string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[name] = err.Error()
	t.failures.Store(int32(len(t.failed)))
	var other *CrashError
	if !errors.Is(err, vk.ErrOutOfDeviceMemory) && !errors.Is(err, vk.ErrOutOfHostMemory) && !errors.As(err, &other) {
		t.results[id] = err.Error()
		t.kept.grown()
	}
	if errors.Is(err, vk.ErrDeviceLost) && t.lost == nil { // the next run should not lose it again
		t.lost = err
	}
}

// prove builds the pipeline of a choice and tests it unless that was done before. Of a row that failed once nothing is
// used any more: a part of its pipelines would make a token's results depend on how many rows share its step.
func (k *Kernels) prove(c choice, row *shaders.Kernel) (*built, error) {
	if !mustProve(row) {
		return k.untested(c, row)
	}
	id := testID(row, specValues(row, c), c.subgroup())
	why, known, err := k.tested.why(row.Name, id)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, &BrokenError{row.Name, k.dev.Physical.Name, why}
	}
	b, err := k.untested(c, row)
	if err == nil && known {
		return b, nil
	}
	begin := time.Now()
	if err == nil {
		end := k.guard.begin(stageTest, id)
		err = k.test(k.plain, Variant{Row: row, Cols: c.cols, Tile: c.tile, GLU: c.glu, Lanes: c.lanes, Per: c.per, RowLanes: c.rowLanes, Group: c.attn.group, Run: c.attn.run, Turning: c.turning, Split: c.split.Split, Key: c.heads.key | c.attn.key, Val: c.heads.val | c.attn.val, Options: c.heads.options, RunSplit: c.heads.RunSplit})
		end(err == nil)
	}
	took := time.Since(begin)
	if err == nil {
		k.tested.passed(id, took)
		k.log.Debug("tested kernel", "name", row.Name, "spec", b.spec, "took", took)
		return b, nil
	}
	k.tested.gaveUp(row.Name, id, err)
	if errors.Is(err, vk.ErrDeviceLost) {
		return nil, err
	}
	k.log.Warn("a kernel is not used, another one is in its place, slower: it failed its test", "kernel", row.Name, "device", k.dev.Physical.Name, "error", err)
	return nil, &BrokenError{row.Name, k.dev.Physical.Name, err.Error()}
}

// TestResult is what a self-test of a pipeline found, in this run or an earlier one.
type TestResult struct {
	Kernel   string
	Pipeline string // its constants
	Error    string // "": passed
}

// Tested lists all results there are, and how long the tests of this run took.
func (k *Kernels) Tested() (results []TestResult, took time.Duration) {
	t := &k.tested
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(t.results)) {
		name := nameOf(id)
		results = append(results, TestResult{name, id[min(len(id), len(name)+1):], t.results[id]})
	}
	return results, t.took
}
