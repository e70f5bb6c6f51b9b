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

// Variant describes a pipeline that is to be tested: a row of the table, and the specialisation constants that depend on shapes or device.
// A constant that the row does not have is 0.
type Variant struct {
	Row            *shaders.Kernel
	Cols           uint32        // NUM_COLS of a mul_mat_vec: rows of X
	Tile           Tile          // of a mul_mat_vec in teams and topk_moe_routed
	GLU            uint32        // shaders.NoGLU, GLUFloats or GLUBytes
	Lanes, Per     uint32        // of rms_norm_q8 and topk_moe_held; Per of topk_moe_routed, whose lanes are Tile's
	RowLanes       uint32        // of rope_norm_kv; of topk_moe_routed those of the norm
	Group, Run     uint32        // of flash_attn_split
	Rope           RopeConstants // of mul_mat_vec_rope
	CMTile         CMTile        // of mul_mat_cm
	KeyLen, ValLen uint32        // head sizes of flash_attn_cm and flash_attn_split
	Options        uint32        // of flash_attn_cm
	CMAttn         CMAttn        // of flash_attn_cm
}

// Outputs is how many output rows a workgroup of a mul_mat_vec in teams computes.
func (v *Variant) Outputs() uint32 { return v.Tile.outputs(v.GLU) }

// helpers are fp32 kernels that only other variants use. They are tested as variants are.
var helpers = []string{"quantize_q8", "tile_f16", "dequant_f16"}

// mustTest reports whether pipelines of a row are tested before use: those of variants and helpers, not of other fp32 kernels, which have no
// stand-in.
func mustTest(row *shaders.Kernel) bool {
	return row.Variant != shaders.FP32 || slices.Contains(helpers, row.Op)
}

// HasStandIn reports whether another kernel is used when the named one fails its self-test.
func HasStandIn(name string) bool {
	row, ok := shaders.Lookup(name)
	return ok && mustTest(row)
}

// tests are the results of self-tests. Each pipeline has a result of its own: drivers compile each anew.
type tests struct {
	mu      sync.Mutex        // guards the fields up to store
	results map[string]string // by testID; "": passed, else why it failed
	failed  map[string]string // by the row's name, of rows with a pipeline that failed or crashed: why
	lost    error             // the device was lost in a test; nil: it was not
	took    time.Duration     // all tests of this run
	store   *store            // writes results to disk

	failures atomic.Int32 // len(failed)
}

// testID identifies a pipeline by the row's name, the constants, the subgroup size, and a hash of the code.
func testID(row *shaders.Kernel, spec []uint32, subgroup int) string {
	sum := sha256.Sum256(row.SPIRV)
	return fmt.Sprintf("%s %v %d %x", row.Name, spec, subgroup, sum[:6])
}

// ofCode reports whether a testID has the hash of the row's present code.
func ofCode(id string, row *shaders.Kernel) bool {
	sum := sha256.Sum256(row.SPIRV)
	return strings.HasSuffix(id, fmt.Sprintf(" %x", sum[:6]))
}

// load reads the results of earlier runs from s, those for the kernels' present code. crashed has, by the row's name, how the driver crashed in a
// kernel. A row that failed or crashed is not tried again with the same code.
func (t *tests) load(s *store, crashed map[string]string) {
	t.results, t.failed, t.store = map[string]string{}, map[string]string{}, s
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

// nameOf is the kernel's name in a testID.
func nameOf(id string) string {
	for i := range id {
		if id[i] == ' ' {
			return id[:i]
		}
	}
	return id
}

// broken reports whether the named kernel must not be used: a pipeline of it failed its test or crashed.
func (t *tests) broken(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[name] != ""
}

// result returns the reason why the named kernel must not be used, "" if it may be, and whether the pipeline id has been tested. lost is not nil
// if a test lost the device.
func (t *tests) result(name, id string) (failed string, known bool, lost error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known = t.results[id]
	return t.failed[name], known, t.lost
}

// notePass notes that a pipeline passed its test, for the next run too.
func (t *tests) notePass(id string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took += took
	t.results[id] = ""
	t.store.markDirty()
}

// noteFailure notes that no pipeline of the named kernel is used in this run, because of err. The next run learns of it, unless the kernel is not at
// fault: memory for the test was lacking, or another kernel that the test needs had crashed.
func (t *tests) noteFailure(name, id string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[name] = err.Error()
	t.failures.Store(int32(len(t.failed)))
	var other *CrashError
	if !errors.Is(err, vk.ErrOutOfDeviceMemory) && !errors.Is(err, vk.ErrOutOfHostMemory) && !errors.As(err, &other) {
		t.results[id] = err.Error()
		t.store.markDirty()
	}
	if errors.Is(err, vk.ErrDeviceLost) && t.lost == nil { // the next run should not lose it again
		t.lost = err
	}
}

// getTested builds the pipeline of a choice and tests it, unless this or an earlier run did, and notes the result. If one pipeline of a row fails,
// none is used: with only some of them a token's results would depend on how many rows share its step.
func (k *Kernels) getTested(c choice, row *shaders.Kernel) (*built, error) {
	if !mustTest(row) {
		return k.getUntested(c, row)
	}
	id := testID(row, specValues(row, c), c.subgroup())
	why, known, err := k.tested.result(row.Name, id)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, &BrokenError{row.Name, k.dev.Physical.Name, why}
	}
	b, err := k.getUntested(c, row)
	if err == nil && known {
		return b, nil
	}
	begin := time.Now()
	if err == nil {
		end := k.guard.begin(stageTest, id)
		err = k.test(k.untested, Variant{Row: row, Cols: c.cols, Tile: c.tile, GLU: c.glu, Lanes: c.lanes, Per: c.per, RowLanes: c.rowLanes, Group: c.attn.group, Run: c.attn.run, Rope: c.rope, CMTile: c.cmTile.CMTile, KeyLen: c.cmAttn.keyLen | c.attn.keyLen, ValLen: c.cmAttn.valLen | c.attn.valLen, Options: c.cmAttn.options, CMAttn: c.cmAttn.CMAttn})
		end(err == nil)
	}
	took := time.Since(begin)
	if err == nil {
		k.tested.notePass(id, took)
		k.log.Debug("tested kernel", "name", row.Name, "spec", b.spec, "took", took)
		return b, nil
	}
	k.tested.noteFailure(row.Name, id, err)
	if errors.Is(err, vk.ErrDeviceLost) {
		return nil, err
	}
	k.log.Warn("a kernel is not used, another one is in its place, slower: it failed its test", "kernel", row.Name, "device", k.dev.Physical.Name, "error", err)
	return nil, &BrokenError{row.Name, k.dev.Physical.Name, err.Error()}
}

// TestResult is what a self-test of a pipeline found, in this run or an earlier one.
type TestResult struct {
	Kernel   string // name
	Pipeline string // its constants, subgroup size and code hash
	Error    string // "": passed
}

// Tested lists the results of this run and of earlier ones, and how long the tests of this run took.
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
