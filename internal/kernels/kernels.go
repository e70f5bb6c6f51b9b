package kernels

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"leat/gguf"
	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk"
)

// Options of [New]; the zero value is a good start.
type Options struct {
	Logger *slog.Logger // nil: silent

	// Test is called before the first use of each pipeline, except those of plain fp32 kernels. k gives the same pipelines without testing them. If
	// Test returns an error, the pipeline's variant is not used, and the op's next variant is. nil: all pipelines are trusted.
	Test func(k *Kernels, v Variant) error

	// Cache is the folder for the driver's pipeline cache, crashes, test results and tuned choices. nil: only crashes are kept, in the folder given to
	// [NoteCrashes].
	Cache *cache.Folder

	// FuseRouter makes CPUs use topk_moe_routed, although separate kernels are faster there. For tests.
	FuseRouter bool

	// FuseRope makes CPUs use mul_mat_vec_rope, although separate kernels are faster there. For tests.
	FuseRope bool

	// Alter, if not nil, returns the code and constants that a pipeline is built with in place of row's code and spec. For tests.
	Alter func(row *shaders.Kernel, spec []uint32) (spirv []byte, other []uint32)
}

// Kernels are the pipelines of one device. They are built and tested when first used, and kept until Close. Goroutines may share a Kernels.
type Kernels struct {
	dev   *vk.Device                                         // the device that the kernels run on
	log   *slog.Logger                                       // gets built kernels and failed tests; never nil
	can   abilities                                          // abilities of the device that are used, by the options
	alter func(*shaders.Kernel, []uint32) ([]byte, []uint32) // [Options].Alter

	// untested builds and owns the pipelines; tests run with it. It is nil in Kernels that test nothing: these own their pipelines themselves.
	untested *Kernels
	test     func(*Kernels, Variant) error // [Options].Test; nil where untested is
	store    *store                        // the cache of pipelines and test results; nil: nothing is kept
	guard    *guard                        // which pipelines the driver crashes in; nil: crashes are not recorded
	tuned    atomic.Pointer[tuned]         // choices that [Kernels.Use] was given; nil: all choices are the program's own

	mu      sync.Mutex        // guards built, refused and closed
	built   map[choice]*built // pipelines ready to use, also those that untested owns
	refused map[choice]error  // choices whose kernel failed its test, and the error: every step asks for them again
	tested  tests             // results of self-tests, of this run and earlier ones
	closed  bool              // Close was called: no pipeline is built any more
}

// abilities says which kernels a device and its driver can run, and which of them the program uses on the device.
type abilities struct {
	matrix      int   // size of the subgroups that multiply cooperative matrices; 0: the device has no such matrices
	shared      int64 // bytes of shared memory of a workgroup
	straight    bool  // int8 products use mul_mat_vec_straight, which has no loops, where it fits
	longs       bool  // int8 products use mul_mat_vec_longs, which loads 64 bits at a time
	lanes       lanes // the device's lanes, for attention of few rows
	few         bool  // the device has the kernels for few rows: int8 products, fused ops
	fusesRope   bool  // mul_mat_vec_rope is used: products of Q, K and V, RoPE and the writes to the KV cache as one
	fusesRouter bool  // topk_moe_routed is used: a norm, a router and its top-k as one
}

// choice identifies a pipeline: a row of the shaders' table, by op, variant and type, and its specialisation constants.
type choice struct {
	op, variant string        // op and variant of the row; variant "": fp32
	typed       bool          // the table has a row of the kernel for each type of weights or KV cache
	typ         gguf.Type     // type of the row, if typed
	rows, cols  uint32        // constants NUM_ROWS and NUM_COLS; 0: the table's values
	whole       bool          // constant WHOLE: rows of X can be read 8 values at a time
	tile        Tile          // constants of a mul_mat_vec in teams
	glu         uint32        // constant GLU of a mul_mat_vec in teams or a product of cooperative matrices
	lanes, per  uint32        // constants LANES and PER of rms_norm_q8, tile_f16 and topk_moe_held; PER of topk_moe_routed
	attn        attn          // constants of flash_attn_split and flash_attn_joined
	rowLanes    uint32        // constant ROW_LANES of rms_norm, rope_norm_kv and topk_moe_routed
	state       uint32        // constant STATE of ssm_scan
	rope        RopeConstants // constants of mul_mat_vec_rope
	cmTile      cmTile        // constants of mul_mat_cm, mul_mat_q_cm and mul_mat_id_cm
	cmAttn      cmAttn        // constants of flash_attn_cm
}

// String is the op, the variant unless it is fp32, and the type.
func (c choice) String() string {
	s := c.op
	if c.variant != "" {
		s += "_" + c.variant
	}
	if c.typed {
		s += " " + c.typ.String()
	}
	return s
}

// row finds the choice's kernel in the shaders' table.
func (c *choice) row() (*shaders.Kernel, error) {
	variant := cmp.Or(c.variant, shaders.FP32)
	if c.typed {
		return shaders.Find(c.op, variant, c.typ)
	}
	return shaders.Find(c.op, variant)
}

// built is a pipeline that is ready to run.
type built struct {
	row      *shaders.Kernel // row of the table
	pipeline *vk.Pipeline    // the pipeline; nil for a dry recorder
	spec     []uint32        // values of the constants that row.Spec lists
}

// New checks that the device can run the table's fp32 kernels, and reads what the cache has. It builds no pipeline: each is built when first used.
func New(dev *vk.Device, o Options) (*Kernels, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	limits, name := &dev.Physical.Limits, dev.Physical.Name
	for _, row := range shaders.Kernels() {
		if row.Variant != shaders.FP32 {
			continue // CanRun checks the row when it is first used
		}
		if row.PushBytes > int(limits.MaxPushConstants) {
			return nil, fmt.Errorf("kernel %s on %s: %d bytes of push constants, want %d", row.Name, name, limits.MaxPushConstants, row.PushBytes)
		}
		if row.LocalSize > int(limits.MaxWorkgroupInvocations) {
			return nil, fmt.Errorf("kernel %s on %s: workgroups of at most %d, want %d", row.Name, name, limits.MaxWorkgroupInvocations, row.LocalSize)
		}
	}
	k := &Kernels{dev: dev, log: log, alter: o.Alter, built: map[choice]*built{}, can: abilities{
		matrix: matrixSubgroup(dev.Physical, dev.Features), shared: int64(limits.MaxSharedBytes), lanes: lanesOf(dev.Physical), few: HasFewRowKernels(dev.Physical, dev.Features),
		fusesRope: fusesRope(dev.Physical, o.FuseRope), fusesRouter: fusesRouter(dev.Physical, o.FuseRouter),
	}}
	k.can.longs = k.can.few && dev.Physical.Type == vk.CPU && dev.Features.Int64
	k.can.straight = k.can.longs && straightOn(dev)
	k.store = openStore(dev, o.Cache, log)
	k.guard = openGuard(dev.Physical, cmp.Or(o.Cache, crashFolder.Load()), log)
	if t, err := LoadTuned(o.Cache, dev); err != nil {
		log.Info("what was tuned is not used", "error", err)
	} else if t != nil {
		if err := k.Use(t); err != nil {
			log.Info("what was tuned is not used", "error", err)
		}
	}
	if o.Test != nil {
		can := k.can
		can.longs, can.straight = false, false // a test names the variant that it runs
		k.untested = &Kernels{dev: dev, log: log, can: can, alter: k.alter, store: k.store, guard: k.guard, built: map[choice]*built{}}
		k.test, k.refused = o.Test, map[choice]error{}
		k.tested.load(k.store, k.guard.failed())
	}
	return k, nil
}

// Device returns the device that the kernels run on.
func (k *Kernels) Device() *vk.Device { return k.dev }

// CanRun reports whether the device has the features and the workgroup size that a kernel of the table needs; for mul_mat_vec_straight, also whether
// the device is faster with it.
func (k *Kernels) CanRun(row *shaders.Kernel) bool {
	f, limits := &k.dev.Features, &k.dev.Physical.Limits
	if row.LocalSize > int(limits.MaxWorkgroupInvocations) {
		return false
	}
	if row.Needs&shaders.Subgroups != 0 && !(f.SubgroupArithmetic && limits.Subgroup >= minSubgroup) {
		return false
	}
	if row.Needs&shaders.CoopMatrix != 0 && k.can.matrix == 0 {
		return false
	}
	if row.Needs&shaders.Int64 != 0 && !f.Int64 {
		return false
	}
	if row.Variant == shaders.Straight && !straightOn(k.dev) {
		return false
	}
	return row.Needs&shaders.IntDot == 0 || f.IntDotProduct
}

// HasFewRowKernels reports whether a device opened with f has the kernels for steps of few rows: int8 products, and several ops fused into one.
func HasFewRowKernels(p *vk.PhysicalDevice, f vk.Features) bool {
	return f.IntDotProduct && f.SubgroupArithmetic && p.Limits.Subgroup >= minSubgroup
}

// PromptsUseInt8 reports whether products of prompts use int8 kernels on a device opened with f, given memory in [Memory.Q8]. They do if the device has no
// cooperative matrices, which are faster for many rows.
func PromptsUseInt8(p *vk.PhysicalDevice, f vk.Features) bool {
	return HasFewRowKernels(p, f) && !PromptsUseMatrices(p, f)
}

// minSubgroup is the smallest subgroup that the shared memory of kernels with subgroups is laid out for.
const minSubgroup = 4

// Close writes what is new to the cache and frees every pipeline; the device must be done with them. It may be called twice.
func (k *Kernels) Close() {
	if k.untested != nil {
		k.untested.freePipelines()
	}
	if k.freePipelines() {
		k.store.close(k)
		k.guard.close()
	}
}

// freePipelines frees the pipelines that k owns, and lets none be built any more. It reports whether this is the first call.
func (k *Kernels) freePipelines() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.closed
	k.closed = true
	if k.untested == nil {
		for _, b := range k.built {
			b.pipeline.Close()
		}
	}
	clear(k.built)
	return first
}

// get returns the pipeline of a choice. At its first use it is built and tested; k.mu is held meanwhile. The error is a
// [*BrokenError] if a test of the kernel failed, a [*CrashError] if it crashed the driver.
func (k *Kernels) get(c choice) (*built, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b, ok := k.built[c]; ok {
		return b, nil
	}
	if k.closed {
		return nil, fmt.Errorf("build kernel %s: the kernels are closed", c)
	}
	if err, ok := k.refused[c]; ok {
		return nil, err
	}
	row, err := c.row()
	if err != nil {
		return nil, err
	}
	if !k.CanRun(row) {
		return nil, fmt.Errorf("build kernel %s: %s lacks what it needs", row.Name, k.dev.Physical.Name)
	}
	if k.untested == nil {
		return k.build(c, row)
	}
	b, err := k.getTested(c, row)
	if broken := (*BrokenError)(nil); errors.As(err, &broken) {
		k.refused[c] = err
	}
	if err == nil {
		k.built[c] = b
	}
	return b, err
}

// getUntested returns the pipeline of a choice from k.untested, without a test: because the pipeline needs none, or the caller tests it.
func (k *Kernels) getUntested(c choice, row *shaders.Kernel) (*built, error) {
	p := k.untested
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.built[c]; ok {
		return b, nil
	}
	return p.build(c, row)
}

// build compiles the pipeline of c, marked for a crash of the driver meanwhile, and adds it to k.built; the caller holds k.mu. A pipeline that crashed
// the driver in an earlier run is not compiled: the error is a [*CrashError].
func (k *Kernels) build(c choice, row *shaders.Kernel) (*built, error) {
	b := &built{row: row, spec: specValues(row, c)}
	id := testID(row, b.spec, c.subgroup())
	if why := k.guard.crashed(id, mustTest(row)); why != "" {
		return nil, &CrashError{row.Name, k.dev.Physical.Name, why}
	}
	end := k.guard.begin(stageCompile, id)
	code, spec := row.SPIRV, b.spec
	if k.alter != nil {
		code, spec = k.alter(row, b.spec)
	}
	start := time.Now()
	var err error
	b.pipeline, err = k.dev.NewPipeline(vk.PipelineOptions{
		Name: row.Name, SPIRV: code, PushBytes: row.PushBytes, Spec: spec, SubgroupSize: c.subgroup(), Cache: k.store.pipelines(),
	})
	end(err == nil)
	if err != nil {
		return nil, fmt.Errorf("build kernel %s: %w", row.Name, err)
	}
	k.log.Debug("built kernel", "name", row.Name, "spec", b.spec, "took", time.Since(start))
	k.store.markDirty()
	k.built[c] = b
	return b, nil
}

// subgroup is the subgroup size that the pipeline is built with; 0: the driver's choice.
func (c *choice) subgroup() int { return max(c.cmTile.subgroup, c.cmAttn.subgroup) }

// Pipeline describes a pipeline that was built: a row of the table with its constants.
type Pipeline struct {
	Name     string       // name of the row
	Spec     string       // NAME=value of each constant
	Pipeline *vk.Pipeline // the pipeline
}

// Built lists the pipelines built so far, ordered by name and constants. The caller must not close them.
func (k *Kernels) Built() []Pipeline {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []Pipeline
	for _, b := range k.built {
		var words []string
		for i, s := range b.row.Spec {
			words = append(words, fmt.Sprintf("%s=%d", s.Name, b.spec[i]))
		}
		list = append(list, Pipeline{b.row.Name, strings.Join(words, " "), b.pipeline})
	}
	slices.SortFunc(list, func(a, b Pipeline) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Spec, b.Spec)) })
	return list
}

// specValues are the row's constants in order, with the choice's in place of the table's.
func specValues(row *shaders.Kernel, c choice) []uint32 {
	set := c.constants()
	values := make([]uint32, len(row.Spec))
	for i, s := range row.Spec {
		values[i] = s.Default
		if v, ok := set[s.Name]; ok {
			values[i] = v
		}
	}
	return values
}

// constants are the specialisation constants that a choice sets, by name.
type constants map[string]uint32

// setNonzero sets a constant unless v is 0, which leaves the table's value.
func (m constants) setNonzero(name string, v uint32) {
	if v != 0 {
		m[name] = v
	}
}

// constants collects the constants that all fields of a choice set.
func (c *choice) constants() constants {
	m := constants{}
	c.tile.constants(m)
	c.attn.constants(m)
	c.cmTile.constants(m)
	c.cmAttn.constants(m)
	c.rope.constants(m)
	m.setNonzero("GLU", c.glu)
	m.setNonzero("NUM_ROWS", c.rows)
	m.setNonzero("NUM_COLS", c.cols)
	m.setNonzero("WHOLE", asUint32(c.whole))
	m.setNonzero("LANES", c.lanes)
	m.setNonzero("PER", c.per)
	m.setNonzero("ROW_LANES", c.rowLanes)
	m.setNonzero("STATE", c.state)
	return m
}

// constant is the value of the kernel's constant of the given name; 1 if it has no such constant.
func (b *built) constant(name string) uint32 {
	for i, s := range b.row.Spec {
		if s.Name == name {
			return b.spec[i]
		}
	}
	return 1
}

// tile is the size of a workgroup's output in a mul_mat: rows of W times rows of X.
func (b *built) tile() (rows, cols uint32) { return b.constant("NUM_ROWS"), b.constant("NUM_COLS") }
