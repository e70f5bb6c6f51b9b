package shaders

import (
	"embed"
	"fmt"
	"reflect"
	"slices"
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
	Variant string    // "fp32": needs nothing optional, batch-invariant per row
	Needs   Needs     // what a device must have beyond Vulkan 1.2 with buffer addresses

	Source  string   // file in this folder
	Defines []string // NAME or NAME=VALUE, what tells this row from others of the same source

	Module    string // name of the row whose SPIR-V it is, for two rows may differ in constants alone
	SPIRV     []byte // nil if tools/genspv has not made it
	PushBytes int    // size of the argument struct
	Spec      []SpecConst
	LocalSize int // lanes in a workgroup; the sources know it as LANES

	args reflect.Type
}

// Needs are optional features.
type Needs uint32

const (
	Subgroups  Needs = 1 << iota // subgroup arithmetic and shuffles, subgroups of 4 lanes or more
	IntDot                       // dot products of packed bytes
	Int64                        // integers of 64 bits
	CoopMatrix                   // cooperative matrices of halves, summed in float32
)

// The variants of a kernel.
const (
	FP32       = "fp32"       // needs nothing optional; batch-invariant per row
	Int8       = "int8"       // X quantised to bytes by quantize_q8
	Longs      = "longs"      // int8 with loads of 64 bits and products by 32-bit integers, for CPUs
	Straight   = "straight"   // longs without a loop, for CPUs
	Persistent = "persistent" // int8 by workgroups that make outputs turn by turn
	Turned     = "rope"       // int8 of queries, keys and values, turned and in the KV cache
	Wide       = "wide"       // fp32 sums of 16-byte loads
	Q8         = "q8"         // the output as bytes too, as quantize_q8 makes them
	Split      = "split"      // parts of the positions side by side
	Joined     = "joined"     // split, with the parts put together by the last workgroup to end
	Join       = "join"       // what split left, put together
	KV         = "kv"         // the output into the KV cache
	NormKV     = "norm_kv"    // kv behind an rms_norm of each head
	CM         = "cm"         // products of cooperative matrices
	BlocksCM   = "q_cm"       // cm of weights in blocks, decoded on their way into the product
	Held       = "held"       // a row's values in the registers of few lanes
	Routed     = "routed"     // behind the norm and the router's product that make the scores

	// Of tile_f16: what is brought into tiles is made on the way.
	Norm = "norm"   // by rms_norm
	SiLU = "swiglu" // by swiglu
	GeLU = "geglu"  // by geglu
)

// SpecConst is a specialisation constant; its constant_id is its index in [Kernel.Spec].
type SpecConst struct {
	Name    string
	Default uint32
	Max     uint32 // 0: no limit of its own
}

// MaxTile bounds NUM_ROWS × NUM_COLS of mul_mat and mul_mat_vec: their reduction holds
// one float per lane and output in the 16 KiB of shared memory that every device has.
const MaxTile = 64

// MaxHead is the largest head size flash_attn takes of values, MaxKey of keys: those of latent attention have a part more.
const (
	MaxHead = 512
	MaxKey  = 576
)

// MaxPer is the most runs of 4 values that a lane holds of a row.
const MaxPer = 16

// MaxRouted is the most experts that topk_moe_routed takes, and MaxAhead the most chunks of a router's row that a lane of it
// has under way.
const (
	MaxRouted = MaxPer * HeldLanes
	MaxAhead  = 8
)

// HeldLanes is the most lanes of topk_moe_held: they should be one subgroup.
const HeldLanes = 32

// MaxHeadSplit is the largest head size flash_attn_split takes, and MaxGroup how many query heads a workgroup of it.
const (
	MaxHeadSplit = 256
	MaxGroup     = 4
)

// SplitLanes is the lanes of a workgroup of flash_attn_split.
const SplitLanes = rowLanes

// MaxEights is how many runs of 8 values of a key, and of a value, a lane of flash_attn_split holds at most.
const MaxEights = 4

// MaxHeadCM is the largest head size flash_attn_cm takes.
const MaxHeadCM = 128

// KVTypesCM are the types of a KV cache that flash_attn_cm takes: what halves hold.
var KVTypesCM = []gguf.Type{gguf.F16, gguf.Q8_0, gguf.Q4_0}

// OPTIONS of flash_attn_cm: what it does not have costs it nothing.
const (
	WithSoftCap = 1 << iota
	WithSinks
	WithSlopes
)

// floatTypes are weights of one value after another.
var floatTypes = []gguf.Type{gguf.F32, gguf.F16, gguf.BF16}

// GridTypes are weights in blocks whose indices stand for entries of a grid: kernels find the grids of all types at Grids, in [GridBytes].
var GridTypes = []gguf.Type{gguf.IQ2_XXS, gguf.IQ2_XS, gguf.IQ2_S, gguf.IQ3_XXS, gguf.IQ3_S, gguf.IQ1_S, gguf.IQ1_M}

// GridBytes is the size of the grids of all types, see Grids of package quant.
const GridBytes = 25600

// HasGrid reports whether a type is one of GridTypes.
func HasGrid(t gguf.Type) bool { return slices.Contains(GridTypes, t) }

// plainRare are rare types without a grid.
var plainRare = []gguf.Type{gguf.TQ1_0, gguf.TQ2_0, gguf.NVFP4, gguf.Q1_0, gguf.Q2_0}

// RareTypes are weights that few models have. All kernels of such a type are made from one reader, see weight_types.glsl, and none is for CPUs alone.
var RareTypes = slices.Concat(plainRare, GridTypes)

// usualBlocks are the other weights in blocks.
var usualBlocks = []gguf.Type{
	gguf.Q4_0, gguf.Q4_1, gguf.Q5_0, gguf.Q5_1, gguf.Q8_0,
	gguf.Q2_K, gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K,
	gguf.IQ4_NL, gguf.IQ4_XS, gguf.MXFP4,
}

// blockTypes are weights in blocks: products with bytes are whole numbers times a few scales.
var blockTypes = slices.Concat(usualBlocks, RareTypes)

// weightTypes are the types get_rows, mul_mat_vec and mul_mat exist for.
var weightTypes = slices.Concat(floatTypes, blockTypes)

// family is an op: one source, compiled once, or once per type.
type family struct {
	op      string
	variant string // "": fp32
	source  string // without .comp; "": the op, then its variant
	module  string // op whose modules it shares; "": it has its own
	needs   Needs
	args    any
	types   []gguf.Type
	spec    []SpecConst
	lanes   int      // 0: lanes
	extra   []string // defines of every row
}

// perLane are the constants of a kernel whose lanes hold a row in registers: PER runs of 4 values each.
var perLane = []SpecConst{{"LANES", rowLanes, 0}, {"PER", 1, MaxPer}}

// attnParts are the constants of flash_attn_split: query heads of a workgroup, the heads' sizes, lanes of a team, positions
// that it takes at a time.
var attnParts = []SpecConst{{"GROUP", 1, MaxGroup}, {"KEY", 128, MaxHeadSplit}, {"VAL", 128, MaxHeadSplit}, {"SHARE", 16, 32}, {"RUN", 8, 8}}

var maxEights = fmt.Sprintf("MAX_EIGHTS=%d", MaxEights)

var maxParts = fmt.Sprintf("MAX_PARTS=%d", MaxParts)
var residentsHead = fmt.Sprintf("RESIDENTS_HEAD=%d", ResidentsHead)

// BlockTypes are those whose blocks kernels with products of bytes or of cooperative matrices read.
func BlockTypes() []gguf.Type { return blockTypes }

// StraightBits are those of a workgroup's number that straight takes.
const StraightBits = 22

// straightTypes are those of straight.
var straightTypes = []gguf.Type{gguf.Q4_0, gguf.Q8_0, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K}

// PersistentTypes are those of persistent: super-blocks, of which it takes 64 values at a time.
var PersistentTypes = []gguf.Type{gguf.Q4_K, gguf.Q5_K, gguf.Q6_K}

// PartTypes are super-blocks of which int8 takes 64 values at a time.
var PartTypes = []gguf.Type{gguf.Q3_K, gguf.Q4_K, gguf.Q5_K, gguf.IQ4_XS}

// Chunk is how many values of a row a lane of a mul_mat_vec in teams takes at a time.
func Chunk(variant string, t gguf.Type) uint32 {
	switch {
	case variant == Wide:
		return 8
	case (variant == Int8 || variant == Turned) && slices.Contains(PartTypes, t):
		return 64
	}
	return 32
}

var families = []family{
	{op: "get_rows", args: GetRowsArgs{}, types: weightTypes},
	{op: "mul_mat_vec", args: MulMatArgs{}, types: weightTypes, spec: tile(4, 1)},
	{op: "mul_mat_vec", variant: Int8, needs: Subgroups | IntDot, args: MulMatTeamArgs{}, types: blockTypes, spec: team(1, 32, 2)},
	{op: "mul_mat_vec", variant: Longs, source: "mul_mat_vec_int8", needs: Subgroups | IntDot | Int64, args: MulMatTeamArgs{}, types: usualBlocks, spec: team(1, 32, 2), extra: []string{"LONGS"}},
	{op: "mul_mat_vec", variant: Straight, needs: Subgroups | IntDot | Int64, args: MulMatStraightArgs{}, types: straightTypes, spec: team(1, 32, 2), extra: []string{fmt.Sprintf("STRAIGHT_BITS=%d", StraightBits)}},
	{op: "mul_mat_vec", variant: Persistent, needs: Subgroups | IntDot, args: MulMatTeamArgs{}, types: PersistentTypes, spec: team(1, 32, 2), extra: []string{"HOLD_MOST=2"}},
	{op: "mul_mat_vec", variant: Turned, source: "mul_mat_vec_int8", needs: Subgroups | IntDot, args: MulMatRopeArgs{}, types: slices.Concat(usualBlocks, plainRare), spec: teamRope(), extra: []string{"ROPE"}},
	{op: "mul_mat_vec", variant: Wide, needs: Subgroups, args: MulMatTeamArgs{}, types: floatTypes, spec: team(1, 32, 2)},
	{op: "quantize_q8", args: QuantizeQ8Args{}},
	{op: "mul_mat", source: "mul_mat_vec", module: "mul_mat_vec", args: MulMatArgs{}, types: weightTypes, spec: tile(4, 1)},
	{op: "rms_norm", variant: Q8, needs: Subgroups, args: RMSNormQ8Args{}, lanes: rowLanes, spec: perLane},
	{op: "rope", args: RopeArgs{}},
	{op: "rope", variant: KV, args: RopeKVArgs{}, types: KVTypes},
	{op: "rope", variant: NormKV, args: RopeNormKVArgs{}, types: KVTypes, spec: []SpecConst{{"ROW_LANES", 32, lanes}}},
	{op: "kv_append", args: KVAppendArgs{}, types: KVTypes},
	{op: "flash_attn", args: FlashAttnArgs{}, types: KVTypes, extra: []string{fmt.Sprintf("MAX_HEAD=%d", MaxHead), fmt.Sprintf("MAX_KEY=%d", MaxKey)}},
	{op: "flash_attn", variant: Split, needs: Subgroups, args: FlashAttnSplitArgs{}, types: KVTypes, lanes: rowLanes,
		spec: attnParts, extra: []string{maxEights, maxParts}},
	{op: "flash_attn", variant: Joined, source: "flash_attn_split", needs: Subgroups, args: FlashAttnSplitArgs{}, types: KVTypes, lanes: rowLanes,
		spec: attnParts, extra: []string{maxEights, maxParts, "JOINED"}},
	{op: "flash_attn", variant: Join, args: FlashAttnJoinArgs{}, lanes: rowLanes, extra: []string{maxParts}},
	{op: "argmax", args: ArgmaxArgs{}, lanes: rowLanes},
	{op: "argmax", variant: Joined, source: "argmax", args: ArgmaxArgs{}, lanes: rowLanes, extra: []string{"JOINED", fmt.Sprintf("PART=%d", ArgmaxPart)}},
	{op: "checksum", args: ChecksumArgs{}, lanes: rowLanes},
	{op: "flash_attn", variant: CM, needs: CoopMatrix | Subgroups, args: FlashAttnArgs{}, types: KVTypesCM, lanes: rowLanes,
		spec: []SpecConst{{"LANES", rowLanes, 0}, {"SUBGROUP", 32, 0}, {"KEY", MaxHeadCM, 0}, {"VAL", MaxHeadCM, 0}, {"OPTIONS", 0, 0}, {"STAGES", 1, 2}}},
	{op: "tile_f16", args: TileF16Args{}, lanes: rowLanes},
	{op: "tile_f16", variant: Wide, source: "tile_f16_wide", args: TileF16WideArgs{}, lanes: rowLanes, spec: perLane},
	{op: "tile_f16", variant: Norm, source: "tile_f16_wide", args: TileF16WideArgs{}, lanes: rowLanes, spec: perLane, extra: []string{"NORM"}},
	{op: "tile_f16", variant: SiLU, source: "tile_f16_wide", args: TileF16WideArgs{}, lanes: rowLanes, spec: perLane, extra: []string{"SWIGLU"}},
	{op: "tile_f16", variant: GeLU, source: "tile_f16_wide", args: TileF16WideArgs{}, lanes: rowLanes, spec: perLane, extra: []string{"GEGLU"}},
	{op: "dequant_f16", args: DequantF16Args{}, types: weightTypes, lanes: rowLanes},
	{op: "topk_moe", args: TopKMoEArgs{}, lanes: rowLanes, extra: []string{fmt.Sprintf("MAX_EXPERTS=%d", MaxExperts), residentsHead}},
	{op: "topk_moe", variant: Held, needs: Subgroups, args: TopKMoEArgs{}, lanes: HeldLanes, spec: []SpecConst{{"LANES", HeldLanes, 0}, {"PER", 1, MaxPer}},
		extra: []string{fmt.Sprintf("MAX_EXPERTS=%d", MaxExperts), residentsHead, fmt.Sprintf("SUM_LANES=%d", rowLanes)}},
	{op: "topk_moe", variant: Routed, needs: Subgroups, args: TopKMoERoutedArgs{}, types: floatTypes, lanes: rowLanes,
		spec:  []SpecConst{{"LANES", rowLanes, 0}, {"PER", 1, MaxPer}, {"TEAM", 32, 0}, {"UNROLL", 1, MaxAhead}, {"ROW_LANES", rowLanes, 0}},
		extra: []string{fmt.Sprintf("MAX_EXPERTS=%d", MaxRouted), residentsHead, fmt.Sprintf("SUM_LANES=%d", rowLanes)}},
	{op: "group_experts", args: GroupExpertsArgs{}, lanes: rowLanes},
	{op: "mul_mat_vec_id", args: MulMatIDArgs{}, types: weightTypes, spec: tile(4, 1)},
	{op: "mul_mat_vec_id", variant: Int8, source: "mul_mat_vec_int8", needs: Subgroups | IntDot, args: MulMatTeamIDArgs{}, types: blockTypes, spec: team(1, 32, 2), extra: []string{"EXPERTS"}},
	{op: "mul_mat_id", args: MulMatIDArgs{}, types: weightTypes, spec: tile(8, 8)},
	{op: "mul_mat_id", variant: CM, needs: CoopMatrix, args: MulMatIDCMArgs{}, types: blockTypes, lanes: rowLanes, spec: blocksCM(64, 32)},
	{op: "sum_experts", args: SumExpertsArgs{}},
	{op: "pair_scale", args: PairScaleArgs{}},
	{op: "lookup_experts", args: LookupExpertsArgs{}, extra: []string{residentsHead}},
	{op: "mul_mat_heads", args: MulMatHeadsArgs{}, types: weightTypes, spec: tile(4, 1)},
	{op: "mul_mat", variant: CM, needs: CoopMatrix, args: MulMatCMArgs{}, lanes: rowLanes,
		spec: []SpecConst{{"LANES", rowLanes, 0}, {"BM", 128, 0}, {"BN", 128, 0}, {"BK", tileStep, tileStep}, {"WM", 64, 0}, {"WN", 64, 0}, {"STAGES", 1, 2}}},
	{op: "mul_mat", variant: BlocksCM, needs: CoopMatrix, args: MulMatCMArgs{}, types: blockTypes, lanes: rowLanes, spec: blocksCM(128, 64)},
}

// blocksCM are the constants of blocks_cm.glsl, BN and WN by default these.
func blocksCM(bn, wn uint32) []SpecConst {
	return []SpecConst{{"LANES", rowLanes, 0}, {"BM", 128, 0}, {"BN", bn, 0}, {"BK", tileStep, tileStep}, {"WM", 64, 0}, {"WN", wn, 0}, {"STAGES", 1, 2}, {"HALVES", 0, 1}, {"WIDE", 0, 1}, {"GLU", 0, 1}}
}

func tile(rows, cols uint32) []SpecConst {
	return []SpecConst{{"NUM_ROWS", rows, MaxTile}, {"NUM_COLS", cols, MaxTile}, {"WHOLE", 0, 1}}
}

// team are the constants of a mul_mat_vec whose lanes work in teams: outputs of a team are NUM_ROWS × NUM_COLS, TEAM lanes
// share a row, and each has UNROLL loads of it under way. GLU is 1 for pairs of rows, 2 where they are stored as bytes too.
func team(rows, lanesOfRow, unroll uint32) []SpecConst {
	return []SpecConst{{"LANES", lanes, 0}, {"NUM_ROWS", rows, 8}, {"NUM_COLS", 1, 8}, {"TEAM", lanesOfRow, 0}, {"UNROLL", unroll, 8}, {"GLU", 0, GLUBytes}}
}

// teamRope are those of mul_mat_vec_rope: of each head so many values of keys and of values, of keys' values so many that turn; FLOATS is 1
// for a cache of F32.
func teamRope() []SpecConst {
	return append(team(4, 32, 2)[:5:5], SpecConst{"KEY", 128, MaxKey}, SpecConst{"VAL", 128, MaxHead}, SpecConst{"TURNS", 128, MaxKey}, SpecConst{"NEOX", 0, 1}, SpecConst{"FLOATS", 0, 1})
}

var (
	kernels = makeKernels()
	byName  = indexKernels()
)

func makeKernels() []Kernel {
	var ks []Kernel
	for _, f := range slices.Concat(families, rowFamilies, stateFamilies) {
		if f.variant == "" {
			f.variant = FP32
		}
		if f.types == nil {
			ks = append(ks, f.kernel(""))
			continue
		}
		for _, t := range f.types {
			k := f.kernel(t.String())
			k.Typed, k.Type = true, t
			k.Defines = append([]string{"TYPE_" + t.String()}, f.extra...)
			ks = append(ks, k)
		}
	}
	return ks
}

func (f family) kernel(typ string) Kernel {
	args := reflect.TypeOf(f.args)
	size := f.lanes
	if size == 0 {
		size = lanes
	}
	source := f.source
	if source == "" {
		source = kernelName(f.op, f.variant, "")
	}
	name := kernelName(f.op, f.variant, typ)
	module := name
	if f.module != "" {
		module = kernelName(f.module, f.variant, typ)
	}
	code, _ := spv.ReadFile("spv/" + module + ".spv") // missing: find says so, and a test
	return Kernel{
		Name: name, Op: f.op, Variant: f.variant, Needs: f.needs, Source: source + ".comp", Module: module, SPIRV: code,
		PushBytes: int(args.Size()), Spec: f.spec, LocalSize: size, args: args, Defines: f.extra,
	}
}

// kernelName is op[_variant][_type], fp32 and no type left out.
func kernelName(op, variant, typ string) string {
	if variant != FP32 {
		op += "_" + variant
	}
	if typ != "" {
		op += "_" + strings.ToLower(typ)
	}
	return op
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
