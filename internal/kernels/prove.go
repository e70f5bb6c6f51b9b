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
	Row            *shaders.Kernel // row of the table
	Cols           uint32          // NUM_COLS of a mul_mat_vec: rows of X
	Tile           Tile            // constants of a mul_mat_vec in teams and topk_moe_routed
	GLU            uint32          // shaders.NoGLU, GLUFloats or GLUBytes
	Lanes, Per     uint32          // LANES and PER of rms_norm_q8, tile_f16 and topk_moe_held; PER of topk_moe_routed, whose LANES are in Tile
	RowLanes       uint32          // ROW_LANES of rope_norm_kv; of topk_moe_routed: the lanes of a separate norm, whose order of sums it has
	Group, Run     uint32          // GROUP and RUN of flash_attn_split and flash_attn_joined
	Rope           RopeConstants   // constants of mul_mat_vec_rope
	CMTile         CMTile          // constants of mul_mat_cm, mul_mat_q_cm and mul_mat_id_cm
	KeyLen, ValLen uint32          // head sizes of flash_attn_cm, flash_attn_split and flash_attn_joined
	Options        uint32          // OPTIONS of flash_attn_cm, see cmAttnOptions
	CMAttn         CMAttn          // constants of flash_attn_cm
}

// Outputs is how many output rows a workgroup of a mul_mat_vec in teams computes.
func (v *Variant) Outputs() uint32 { return v.Tile.outputs(v.GLU) }

// helpers are kernels of the variant fp32 that only other variants use. They are tested like other variants.
var helpers = []string{"quantize_q8", "tile_f16", "dequant_f16"}

// mustTest reports whether pipelines of a row are tested before use: those of variants other than fp32, and of helpers. Other fp32 kernels are not tested,
// because no kernel can stand in for them.
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
	results map[string]string // by testID: "" if the test passed, else why it failed
	failed  map[string]string // for rows with a pipeline that failed or crashed, by the row's name: why
	lost    error             // error of a test in which the device was lost; nil: it was not lost
	took    time.Duration     // time that all tests of this run took
	store   *store            // writes results to disk

	failures atomic.Int32 // len(failed), to be read without the lock
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

// load reads the results of earlier runs from s that are for the kernels' present code. crashed has, by the row's name, how the driver crashed in a
// kernel. A row that failed or crashed is not tried again with the same code.
func (t *tests) load(s *store, crashed map[string]string) {
	t.results, t.failed, t.store = map[string]string{}, map[string]string{}, s
	kept := s.loadTests()
	for id, why := range kept {
		row, ok := shaders.Lookup(nameOf(id))
		if !ok || !ofCode(id, row) {
			continue // the result is for another version of the kernel
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

// notePass notes that the pipeline id passed its test, which took this long. It marks the store dirty, so that the next run knows of it.
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
	if errors.Is(err, vk.ErrDeviceLost) && t.lost == nil {
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

// TestResult is the result of a pipeline's self-test, in this run or an earlier one.
type TestResult struct {
	Kernel   string // name of the kernel
	Pipeline string // the pipeline's constants, subgroup size and code hash
	Error    string // why the test failed; "": it passed
}

// Tested lists the results of self-tests of this run and of earlier ones, and how long the tests of this run took.
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
