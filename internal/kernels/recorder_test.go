package kernels

import (
	"errors"
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

func TestVecCols(t *testing.T) {
	for n, want := range []uint32{1, 1, 2, 4, 4, 8, 8, 8, 8, 0, 0} {
		if got := vecCols(uint32(n)); got != want {
			t.Errorf("vecCols(%d) = %d, want %d", n, got, want)
		}
	}
}

// Argument errors name op, argument, what was found and what is wanted.
func TestArguments(t *testing.T) {
	const at = 256
	mul := shaders.MulMatArgs{W: at, X: at, Dst: at, M: 3, K: 256, N: 1, XStride: 256, DstStride: 3}
	attn := shaders.FlashAttnArgs{Q: at, Dst: at, Pages: at, Seen: at, Seq: at, Rows: 1, Heads: 4, HeadsKV: 2, KeyLen: 64, ValLen: 64,
		MaxPages: 1, PagePositions: 16, QStride: 256, DstStride: 256, Scale: 1}
	rope := shaders.RopeArgs{X: at, CosSin: at, Rows: 1, Heads: 2, HeadDim: 64, RopeDim: 64, XStride: 128}
	r := (&Kernels{dev: noDevice}).Recorder(nil)
	odd := (&Kernels{dev: &vk.Device{Physical: &vk.PhysicalDevice{Limits: vk.Limits{MaxWorkgroupInvocations: 256}}}}).Recorder(nil)
	odd.Override.Tile = Tile{Rows: 1, Team: 24, Unroll: 1, Lanes: 64}
	far := (&Kernels{dev: noDevice}).Recorder(nil)
	far.Memory.Grids = Scratch{Address: 1 << 40, Bytes: shaders.GridBytes}
	bytes := shaders.MulMatTeamArgs{W0: at, X: at, S: at, Dst0: at, M0: 3, K: 256, N: 1, DstStride: 3}
	turned := shaders.MulMatRopeArgs{W0: at, X: at, S: at, Dst: at, CosSin: at, K: 256, N: 1, Heads: 2 | 1<<16}
	wide := with(bytes, func(a *shaders.MulMatTeamArgs) { a.K, a.XStride = 100, 100 })
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"K", MulMat(r, gguf.Q4_K, with(mul, func(a *shaders.MulMatArgs) { a.K, a.XStride = 100, 100 })),
			"record mul_mat_vec Q4_K: K is 100, want a multiple of 256"},
		{"many rows", MulMat(r, gguf.Q4_K, with(mul, func(a *shaders.MulMatArgs) { a.N, a.K, a.XStride = 9, 32, 32 })),
			"record mul_mat Q4_K: K is 32, want a multiple of 256"},
		{"no K", MulMat(r, gguf.F32, with(mul, func(a *shaders.MulMatArgs) { a.K = 0 })),
			"record mul_mat_vec F32: K is 0, want more than 0"},
		{"address", MulMat(r, gguf.F32, with(mul, func(a *shaders.MulMatArgs) { a.X = 0x1008 })),
			"record mul_mat_vec F32: X is address 0x1008, want a multiple of 16, not 0"},
		{"stride", MulMat(r, gguf.F32, with(mul, func(a *shaders.MulMatArgs) { a.DstStride = 2 })),
			"record mul_mat_vec F32: DstStride is 2, want at least the row's 3 values"},
		{"no grids", MulMat(r, gguf.IQ2_S, mul),
			"record mul_mat_vec IQ2_S: Memory.Grids is address 0x0, want a multiple of 16, not 0"},
		{"grids of no lookup", GetRows(r, gguf.IQ3_S, shaders.GetRowsArgs{Table: at, IDs: at, Dst: at, Rows: 1, Cols: 256}),
			"record get_rows IQ3_S: Memory.Grids is address 0x0, want a multiple of 16, not 0"},
		{"grids far away", MulMatTeam(far, shaders.Int8, gguf.IQ1_S, shaders.NoGLU, bytes),
			"record mul_mat_vec_int8 IQ1_S: XStride is 4294967280, want Memory.Grids and S less than 32 GiB apart, each on 16 bytes"},
		{"team", MulMatTeam(odd, shaders.Int8, gguf.Q4_K, shaders.NoGLU, bytes),
			"record mul_mat_vec_int8 Q4_K: Tile.Team is 24, want a power of 2, 8 to 64"},
		{"second matrix", MulMatTeam(r, shaders.Int8, gguf.Q4_K, shaders.NoGLU, with(bytes, func(a *shaders.MulMatTeamArgs) { a.M1, a.W1 = 3, at })),
			"record mul_mat_vec_int8 Q4_K: Dst1 is address 0x0, want a multiple of 4, not 0"},
		{"gates", MulMatTeam(r, shaders.Int8, gguf.Q4_K, shaders.GLUFloats, with(bytes, func(a *shaders.MulMatTeamArgs) { a.M1, a.W1 = 4, at })),
			"record mul_mat_vec_int8 Q4_K: M1 is 4, want M0, 3, for gates and what they let through"},
		{"a head of which an odd pair turns", MulMatRope(r, gguf.Q4_K, RopeConstants{KeyLen: 64, ValLen: 64, RopeDim: 6}, with(turned, func(*shaders.MulMatRopeArgs) {})),
			"record mul_mat_vec_rope Q4_K: RopeDim is 6, want a multiple of 4"},
		{"many rows that turn", MulMatRope(r, gguf.Q4_K, RopeConstants{KeyLen: 64, ValLen: 64, RopeDim: 64}, with(turned, func(a *shaders.MulMatRopeArgs) { a.N = 9 })),
			"record mul_mat_vec_rope Q4_K: N is 9, want at most 8"},
		{"queries that go nowhere", MulMatRope(r, gguf.Q4_K, RopeConstants{KeyLen: 64, ValLen: 64, RopeDim: 64}, with(turned, func(a *shaders.MulMatRopeArgs) { a.Dst = 0 })),
			"record mul_mat_vec_rope Q4_K: Dst is address 0x0, want a multiple of 16, not 0"},
		{"a team that turns", MulMatRope(odd, gguf.Q4_K, RopeConstants{KeyLen: 64, ValLen: 64, RopeDim: 64}, turned),
			"record mul_mat_vec_rope Q4_K: Tile.Team is 24, want a power of 2, 8 to 64"},
		{"wide rows", MulMatTeam(r, shaders.Wide, gguf.F16, shaders.NoGLU, wide),
			"record mul_mat_vec_wide F16: K is 100, want a multiple of 8"},
		{"parts", FlashAttnSplit(r, gguf.F16, 3, shaders.FlashAttnSplitArgs{Q: at, Parts: at, Pages: at, Seen: at, Seq: at, Rows: 1, Heads: 4, HeadsKV: 1,
			KeyLen: 64, ValLen: 64, MaxPages: 1, PagePositions: 16, QStride: 256, MaxParts: 4}),
			"record flash_attn_split F16: the group is 3, want a divisor of the 4 heads that share a key head"},
		{"quantize", QuantizeQ8(r, shaders.QuantizeQ8Args{X: at, Q: at, S: at, Rows: 1, Cols: 48, XStride: 48}),
			"record quantize_q8: Cols is 48, want a multiple of 32"},
		{"get_rows", GetRows(r, gguf.Q8_0, shaders.GetRowsArgs{Table: at, IDs: at, Dst: at, Rows: 1, Cols: 33}),
			"record get_rows Q8_0: Cols is 33, want a multiple of 32"},
		{"GQA", FlashAttn(r, gguf.F16, with(attn, func(a *shaders.FlashAttnArgs) { a.HeadsKV = 3 })),
			"record flash_attn F16: Heads is 4, want a multiple of HeadsKV, 3"},
		{"head size", FlashAttn(r, gguf.F16, with(attn, func(a *shaders.FlashAttnArgs) { a.KeyLen = 20 })),
			"record flash_attn F16: KeyLen is 20, want a multiple of 8"},
		{"long head", FlashAttn(r, gguf.F16, with(attn, func(a *shaders.FlashAttnArgs) { a.ValLen, a.DstStride = 576, 4*576 })),
			"record flash_attn F16: ValLen is 576, want at most 512"},
		{"layer", FlashAttn(r, gguf.F32, with(attn, func(a *shaders.FlashAttnArgs) { a.LayerOff = 8 })),
			"record flash_attn F32: LayerOff is 8, want a multiple of 16"},
		{"sinks and slopes", FlashAttn(r, gguf.F32, with(attn, func(a *shaders.FlashAttnArgs) { a.Sinks, a.Slopes = at, at })),
			"record flash_attn F32: Slopes is 256, want 0 beside sinks"},
		{"pages", KVAppend(r, gguf.F16, shaders.KVAppendArgs{K: at, V: at, Pages: at, Pos: at, Seq: at, Rows: 1, HeadsKV: 1, KeyLen: 8, ValLen: 8, KStride: 8, VStride: 8, PagePositions: 1}),
			"record kv_append F16: MaxPages is 0, want more than 0"},
		{"rope", Rope(r, with(rope, func(a *shaders.RopeArgs) { a.RopeDim = 66 })),
			"record rope: RopeDim is 66, want at most HeadDim, 64"},
		{"rope row", Rope(r, with(rope, func(a *shaders.RopeArgs) { a.XStride = 64 })),
			"record rope: XStride is 64, want at least the row's 128 values"},
		{"bias", Add(r, shaders.AddArgs{A: at, B: at, Dst: at, Count: 8, BCols: 9}),
			"record add: BCols is 9, want 1 to Count, 8"},
		{"there", LookupExperts(r, shaders.LookupExpertsArgs{Residents: at + 4, IDs: at, Count: 8}),
			"record lookup_experts: Residents is address 0x104, want a multiple of 8, not 0"},
		{"argmax", Argmax(r, shaders.ArgmaxArgs{X: at, Dst: at, Rows: 1}),
			"record argmax: Cols is 0, want more than 0"},
		{"eps", RMSNorm(r, shaders.RMSNormArgs{X: at, W: at, Dst: at, Rows: 1, Cols: 8, XStride: 8, DstStride: 8, Eps: -1}),
			"record rms_norm: Eps is -1, want 0 or more"},
		{"weights of heads", LayerNorm(r, shaders.NormArgs{X: at, W: at + 4, Dst: at, Rows: 1, Cols: 8, XStride: 8, DstStride: 8}),
			"record norm: W is address 0x104, want a multiple of 16, not 0"},
		{"limits", Clamp(r, shaders.ClampArgs{X: at, Dst: at, Count: 8, Min: 1, Max: -1}),
			"record clamp: Min is 1, want at most Max, -1"},
		{"factors", Mul(r, shaders.MulArgs{A: at, B: at, Dst: at, Count: 8, Repeat: 1, BCount: 9}),
			"record mul: BCount is 9, want 1 to Count, 8"},
		{"cap", SoftCap(r, shaders.SoftCapArgs{X: at, Dst: at, Count: 8, Factor: 1}),
			"record soft_cap: Cap is 0, want more than 0"},
		{"copies", Cpy(r, shaders.CpyArgs{X: at, Dst: at, Rows: 7, Cols: 8, XStride: 8, DstStride: 8, Repeat: 2}),
			"record cpy: Rows is 7, want a multiple of 2"},
		{"state", SSMScan(r, shaders.SSMScanArgs{States: at, Seq: at, Pos: at, Rows: 1, Sequences: 1, Channels: 8, State: 65}),
			"record ssm_scan: State is 65, want at most 64"},
		{"groups", SSDScan(r, shaders.SSDScanArgs{States: at, Seq: at, Pos: at, Rows: 1, Sequences: 1, Heads: 4, Head: 8, State: 8, Groups: 3}),
			"record ssd_scan: Heads is 4, want a multiple of 3"},
		{"type", MulMat(r, gguf.Q8_1, with(mul, func(*shaders.MulMatArgs) {})),
			"find kernel mul_mat_vec for Q8_1: no such kernel in the table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || c.err.Error() != c.want {
				t.Errorf("error is %v, want %s", c.err, c.want)
			}
		})
	}
}

func with[T any](a T, change func(*T)) T {
	change(&a)
	return a
}

// Ops without work record nothing, whatever their other arguments.
func TestNoWork(t *testing.T) {
	r := (&Kernels{dev: noDevice}).Recorder(nil)
	for name, err := range map[string]error{
		"get_rows":       GetRows(r, gguf.F32, shaders.GetRowsArgs{Cols: 8}),
		"mul_mat":        MulMat(r, gguf.F32, shaders.MulMatArgs{M: 8, K: 8}),
		"rms_norm":       RMSNorm(r, shaders.RMSNormArgs{Cols: 8}),
		"rope":           Rope(r, shaders.RopeArgs{Rows: 1, Heads: 1}),
		"kv_append":      KVAppend(r, gguf.F16, shaders.KVAppendArgs{}),
		"flash_attn":     FlashAttn(r, gguf.F16, shaders.FlashAttnArgs{}),
		"soft_max":       SoftMax(r, shaders.SoftMaxArgs{}),
		"swiglu":         SwiGLU(r, shaders.GLUArgs{}),
		"geglu":          GLU(r, GELU, shaders.GLUArgs{}),
		"add":            Add(r, shaders.AddArgs{}),
		"norm":           LayerNorm(r, shaders.NormArgs{Cols: 8}),
		"gelu":           Unary(r, GELU, shaders.UnaryArgs{}),
		"mul":            Mul(r, shaders.MulArgs{}),
		"ssm_scan":       SSMScan(r, shaders.SSMScanArgs{Rows: 1}),
		"ssd_scan":       SSDScan(r, shaders.SSDScanArgs{Rows: 1}),
		"argmax":         Argmax(r, shaders.ArgmaxArgs{}),
		"checksum":       Checksum(r, shaders.ChecksumArgs{}),
		"quantize":       QuantizeQ8(r, shaders.QuantizeQ8Args{Cols: 32}),
		"mul_mat, teams": MulMatTeam(r, shaders.Int8, gguf.Q4_K, shaders.NoGLU, shaders.MulMatTeamArgs{K: 8, N: 1}),
		"mul_mat, rope":  MulMatRope(r, gguf.Q4_K, RopeConstants{KeyLen: 64, ValLen: 64}, shaders.MulMatRopeArgs{W0: 256, K: 256, Heads: 1}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, f := r.Cost(); b != 0 || f != 0 {
		t.Errorf("no work costs %v bytes, %v flops", b, f)
	}
}

func TestKernels(t *testing.T) {
	dev := vktest.Open(t)
	k, err := New(dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	pool, err := dev.Compute.NewCommandPool()
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	cb, err := pool.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := cb.Begin(); err != nil {
		t.Fatal(err)
	}
	buf, err := dev.NewBuffer("test", 1<<20, vk.DeviceLocal)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	r := k.Recorder(cb)
	mul := shaders.MulMatArgs{W: buf.Address, X: buf.Address + 1<<16, Dst: buf.Address + 1<<17, M: 8, K: 64, XStride: 64, DstStride: 8}
	for _, step := range []struct {
		n         uint32
		pipelines int
	}{{1, 1}, {2, 2}, {3, 3}, {4, 3}, {8, 4}, {9, 5}, {16, 5}} {
		mul.N = step.n
		if err := MulMat(r, gguf.F32, mul); err != nil {
			t.Fatal(err)
		}
		if len(k.built) != step.pipelines {
			t.Errorf("after N=%d: %d pipelines, want %d", step.n, len(k.built), step.pipelines)
		}
	}
	r.ResetCost()
	mul.N = 2
	if err := MulMat(r, gguf.F32, mul); err != nil {
		t.Fatal(err)
	}
	if b, f := r.Cost(); b != 8*64*4+4*2*(64+8) || f != 2*8*64*2 {
		t.Errorf("cost is %v bytes, %v flops", b, f)
	}
	var arg *ArgError
	if err := Add(r, shaders.AddArgs{A: 16, B: 16, Dst: 16, Count: 1 << 31, BCols: 1}); err != nil {
		t.Errorf("a grid that folds: %v", err)
	}
	huge := mul
	huge.M, huge.N, huge.DstStride = 1<<31, 1<<10, 1<<31
	if err := MulMat(r, gguf.F32, huge); !errors.As(err, &arg) {
		t.Errorf("a grid too large: %v", err)
	}
	if err := cb.End(); err != nil {
		t.Fatal(err)
	}
	k.Close()
	if err := RMSNorm(r, shaders.RMSNormArgs{X: 16, W: 16, Dst: 16, Rows: 1, Cols: 8, XStride: 8, DstStride: 8}); err == nil {
		t.Error("closed kernels build a pipeline")
	}
}
