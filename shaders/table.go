package shaders

import (
	"embed"
	"fmt"
	"reflect"
	"strings"

	"leat/gguf"
)

//go:embed spv
var spv embed.FS

// The sizes of workgroups: part of the results, for the order of each reduction is made of them.
// 128 is the most that every device has.
const (
	lanes    = 64
	rowLanes = 128 // kernels that reduce a whole row
)

// Kernel is one row of the table: a compiled shader and how to call it.
type Kernel struct {
	Name    string    // Op, then the type in lower case where there is one: "mul_mat_vec_q4_k"
	Op      string    // ggml's name of the operation
	Typed   bool      // Type means something
	Type    gguf.Type // of the weights or of the KV cache
	Variant string    // "fp32": needs nothing optional, batch-invariant per row; "coopmat": needs cooperative matrices

	Source  string   // file in this folder
	Defines []string // NAME or NAME=VALUE, what tells this row from others of the same source

	SPIRV     []byte // nil if tools/genspv has not made it
	PushBytes int    // size of the argument struct
	Spec      []SpecConst
	LocalSize int // lanes in a workgroup; the sources know it as LANES

	args reflect.Type
}

// SpecConst is a specialisation constant; its constant_id is its index in [Kernel.Spec].
type SpecConst struct {
	Name    string
	Default uint32
	Max     uint32 // 0: no limit of its own
}

// MaxTile bounds NUM_ROWS × NUM_COLS of mul_mat and mul_mat_vec: their reduction holds
// one float per lane and output in the 16 KiB of shared memory that every device has.
const MaxTile = 64

// MaxHead is the largest head size flash_attn takes, of keys and of values.
const MaxHead = 512

// MaxHeadCM is the largest head size flash_attn_cm takes.
const MaxHeadCM = 128

// weightTypes are the types get_rows, mul_mat_vec and mul_mat exist for.
var weightTypes = []gguf.Type{
	gguf.F32, gguf.F16, gguf.BF16,
	gguf.Q4_0, gguf.Q4_1, gguf.Q5_0, gguf.Q5_1, gguf.Q8_0,
	gguf.Q2_K, gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K,
	gguf.IQ4_NL, gguf.IQ4_XS,
}

// family is an op: one source, compiled once, or once per type.
type family struct {
	op    string
	args  any
	types []gguf.Type
	spec  []SpecConst
	lanes int      // 0: lanes
	needs string   // variant; "": fp32
	extra []string // defines of every row
}

var families = []family{
	{op: "get_rows", args: GetRowsArgs{}, types: weightTypes},
	{op: "mul_mat_vec", args: MulMatArgs{}, types: weightTypes, spec: tile(4, 1)},
	{op: "mul_mat", args: MulMatArgs{}, types: weightTypes, spec: tile(8, 8)},
	{op: "rms_norm", args: RMSNormArgs{}, lanes: rowLanes},
	{op: "rope", args: RopeArgs{}},
	{op: "kv_append", args: KVAppendArgs{}, types: []gguf.Type{gguf.F16, gguf.F32}},
	{op: "flash_attn", args: FlashAttnArgs{}, types: []gguf.Type{gguf.F16, gguf.F32}, extra: []string{fmt.Sprintf("MAX_HEAD=%d", MaxHead)}},
	{op: "soft_max", args: SoftMaxArgs{}, lanes: rowLanes},
	{op: "swiglu", args: GLUArgs{}},
	{op: "geglu", args: GLUArgs{}},
	{op: "add", args: AddArgs{}},
	{op: "argmax", args: ArgmaxArgs{}, lanes: rowLanes},
	{op: "flash_attn_cm", args: FlashAttnArgs{}, lanes: rowLanes, needs: "coopmat",
		spec: []SpecConst{{"LANES", rowLanes, 0}, {"SUBGROUP", 32, 0}, {"KEY", MaxHeadCM, 0}, {"VAL", MaxHeadCM, 0}}},
	{op: "tile_f16", args: TileF16Args{}, lanes: rowLanes},
	{op: "dequant_f16", args: DequantF16Args{}, types: weightTypes, lanes: rowLanes},
	{op: "mul_mat_cm", args: MulMatCMArgs{}, lanes: rowLanes, needs: "coopmat",
		spec: []SpecConst{{"LANES", rowLanes, 0}, {"BM", 128, 0}, {"BN", 128, 0}, {"BK", tileStep, 0}, {"WM", 64, 0}, {"WN", 64, 0}}},
}

func tile(rows, cols uint32) []SpecConst {
	return []SpecConst{{"NUM_ROWS", rows, MaxTile}, {"NUM_COLS", cols, MaxTile}, {"WHOLE", 0, 1}}
}

var (
	kernels = makeKernels()
	byName  = indexKernels()
)

func makeKernels() []Kernel {
	var ks []Kernel
	for _, f := range families {
		if f.types == nil {
			ks = append(ks, f.kernel(f.op))
			continue
		}
		for _, t := range f.types {
			k := f.kernel(f.op + "_" + strings.ToLower(t.String()))
			k.Typed, k.Type = true, t
			k.Defines = append([]string{"TYPE_" + t.String()}, f.extra...)
			ks = append(ks, k)
		}
	}
	return ks
}

func (f family) kernel(name string) Kernel {
	args := reflect.TypeOf(f.args)
	size := f.lanes
	if size == 0 {
		size = lanes
	}
	needs := f.needs
	if needs == "" {
		needs = "fp32"
	}
	code, _ := spv.ReadFile("spv/" + name + ".spv") // missing: find says so, and a test
	return Kernel{
		Name: name, Op: f.op, Variant: needs, Source: f.op + ".comp", SPIRV: code,
		PushBytes: int(args.Size()), Spec: f.spec, LocalSize: size, args: args,
	}
}

func indexKernels() map[string]*Kernel {
	m := make(map[string]*Kernel, len(kernels))
	for i := range kernels {
		m[kernels[i].Name] = &kernels[i]
	}
	return m
}

// Kernels returns all rows. They are shared: don't change them.
func Kernels() []Kernel { return kernels }

// Lookup finds a row by its name.
func Lookup(name string) (*Kernel, bool) {
	k, ok := byName[name]
	return k, ok
}

// MissingError says that the table has no such kernel.
type MissingError struct {
	Op   string
	Type string // "" for an op without types
	Why  string
}

func (e *MissingError) Error() string {
	what := e.Op
	if e.Type != "" {
		what += " for " + e.Type
	}
	return fmt.Sprintf("find kernel %s: %s", what, e.Why)
}

func find(op, typ string) (*Kernel, error) {
	name := op
	if typ != "" {
		name += "_" + strings.ToLower(typ)
	}
	k, ok := byName[name]
	switch {
	case !ok:
		return nil, &MissingError{op, typ, "no such kernel in the table"}
	case len(k.SPIRV) == 0:
		return nil, &MissingError{op, typ, "spv/" + name + ".spv is not built in"}
	}
	return k, nil
}

// GetRows finds the kernel that looks rows up in a table of type t.
func GetRows(t gguf.Type) (*Kernel, error) { return find("get_rows", t.String()) }

// MulMatVec finds the kernel for weights of type t and a few rows of X.
func MulMatVec(t gguf.Type) (*Kernel, error) { return find("mul_mat_vec", t.String()) }

// MulMat finds the kernel for weights of type t and many rows of X.
func MulMat(t gguf.Type) (*Kernel, error) { return find("mul_mat", t.String()) }

// KVAppend finds the kernel that stores into a KV cache of type t: F16 or F32.
func KVAppend(t gguf.Type) (*Kernel, error) { return find("kv_append", t.String()) }

// FlashAttn finds the attention kernel over a KV cache of type t: F16 or F32.
func FlashAttn(t gguf.Type) (*Kernel, error) { return find("flash_attn", t.String()) }

// FlashAttnCM finds the attention kernel for many rows of one sequence over an F16 cache.
func FlashAttnCM() (*Kernel, error) { return find("flash_attn_cm", "") }

// RMSNorm finds rms_norm.
func RMSNorm() (*Kernel, error) { return find("rms_norm", "") }

// Rope finds rope.
func Rope() (*Kernel, error) { return find("rope", "") }

// SoftMax finds soft_max.
func SoftMax() (*Kernel, error) { return find("soft_max", "") }

// SwiGLU finds swiglu.
func SwiGLU() (*Kernel, error) { return find("swiglu", "") }

// GeGLU finds geglu.
func GeGLU() (*Kernel, error) { return find("geglu", "") }

// Add finds add.
func Add() (*Kernel, error) { return find("add", "") }

// Argmax finds argmax.
func Argmax() (*Kernel, error) { return find("argmax", "") }

// TileF16 finds the kernel that brings rows of X into tiles.
func TileF16() (*Kernel, error) { return find("tile_f16", "") }

// DequantF16 finds the kernel that brings weights of type t into tiles.
func DequantF16(t gguf.Type) (*Kernel, error) { return find("dequant_f16", t.String()) }

// MulMatCM finds the product of two matrices in tiles.
func MulMatCM() (*Kernel, error) { return find("mul_mat_cm", "") }
