package shaders

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"leat/gguf"
	"leat/gguf/quant"
)

func modules(t *testing.T, check func(t *testing.T, k *Kernel, m *module)) {
	t.Helper()
	for i := range kernels {
		k := &kernels[i]
		t.Run(k.Name, func(t *testing.T) {
			m, err := parse(k.SPIRV)
			if err != nil {
				t.Fatalf("spv/%s.spv: %v", k.Name, err)
			}
			check(t, k, m)
		})
	}
}

// The push-constant block of each kernel is its Go struct: names, offsets, types, size.
func TestPushConstants(t *testing.T) {
	types := map[reflect.Kind]string{reflect.Uint64: "uvec2", reflect.Uint32: "uint", reflect.Float32: "float"}
	modules(t, func(t *testing.T, k *Kernel, m *module) {
		if k.PushBytes != int(k.args.Size()) || k.PushBytes > 128 {
			t.Errorf("PushBytes is %d, the struct has %d, want the same and at most 128", k.PushBytes, k.args.Size())
		}
		if len(m.push) != k.args.NumField() {
			t.Fatalf("the block has %d members %v, %v has %d", len(m.push), m.push, k.args, k.args.NumField())
		}
		for i, have := range m.push {
			f := k.args.Field(i)
			want := member{f.Name, uint32(f.Offset), types[f.Type.Kind()]}
			if f.Name == "_" {
				want.name = "pad0"
			}
			if have != want {
				t.Errorf("member %d is %+v, want %+v as in %v", i, have, want, k.args)
			}
		}
	})
}

// A kernel needs nothing a Vulkan 1.2 device with buffer addresses may lack but what the table says; fp32 nothing at all.
func TestNeeds(t *testing.T) {
	optional := map[uint32]Needs{capabilityShuffle: Subgroups, capabilityArithmetic: Subgroups, capabilityDot: IntDot, capabilityDotPacked: IntDot, capabilityInt64: Int64,
		capabilityMatrix: CoopMatrix, capabilityVote: CoopMatrix, capabilityFloat16: CoopMatrix, capabilityStorage16: CoopMatrix, capabilityMemoryModel: CoopMatrix}
	modules(t, func(t *testing.T, k *Kernel, m *module) {
		if k.Variant == FP32 && k.Needs != 0 {
			t.Errorf("an fp32 kernel needs %b", k.Needs)
		}
		used := Needs(0)
		for _, c := range m.capabilities {
			if c == capabilityShader || c == capabilityPhysicalStorage || c == capabilityNonUniform { // the last is of Vulkan 1.1
				continue
			}
			if optional[c] == 0 {
				t.Errorf("capability %d, want those that a row of the table can name", c)
			}
			used |= optional[c]
		}
		if used != k.Needs {
			t.Errorf("the module's capabilities need %b, the table says %b", used, k.Needs)
		}
		if m.addressing != addressingPhysical64 {
			t.Errorf("addressing model %d, want PhysicalStorageBuffer64", m.addressing)
		}
		if m.descriptors != 0 {
			t.Errorf("%d descriptors, want none", m.descriptors)
		}
		if m.pointerLists != 0 {
			t.Errorf("%d variables hold an array of pointers, want addresses: SwiftShader crashes as it compiles them", m.pointerLists)
		}
	})
}

func TestSizesAndConstants(t *testing.T) {
	modules(t, func(t *testing.T, k *Kernel, m *module) {
		if size, ok := laneConstant(k); ok {
			m.localSize = size
		}
		if int(m.localSize) != k.LocalSize || k.LocalSize > 128 {
			t.Errorf("workgroup of %d lanes, the table has %d, want the same and at most 128", m.localSize, k.LocalSize)
		}
		if len(m.spec) != len(k.Spec) {
			t.Errorf("specialisation constants %v, the table has %v", m.spec, k.Spec)
		}
		for i, s := range k.Spec {
			if have, ok := m.spec[uint32(i)]; !ok || have != s.Default {
				t.Errorf("constant %d is %d (%v), want %s = %d", i, have, ok, s.Name, s.Default)
			}
		}
	})
}

// laneConstant is the default size of a workgroup that a specialisation constant decides.
func laneConstant(k *Kernel) (uint32, bool) {
	for _, s := range k.Spec {
		if s.Name == "LANES" {
			return s.Default, true
		}
	}
	return 0, false
}

// No driver may fuse or reorder an addition or multiplication: bit equality between kernels rests on it.
func TestNoContraction(t *testing.T) {
	modules(t, func(t *testing.T, k *Kernel, m *module) {
		if k.Variant != FP32 {
			return
		}
		if len(m.contractible) > 0 {
			t.Errorf("%d operations lack NoContraction (a precise variable): %v", len(m.contractible), m.contractible)
		}
	})
}

func TestSPIRVIsValid(t *testing.T) {
	val, err := exec.LookPath("spirv-val")
	if err != nil {
		if os.Getenv("LEAT_REQUIRE_TOOLS") == "1" {
			t.Fatal("spirv-val is not installed, LEAT_REQUIRE_TOOLS=1 wants it (Debian: spirv-tools)")
		}
		t.Skip("spirv-val is not installed (Debian: spirv-tools)")
	}
	for _, k := range kernels {
		if k.Needs&CoopMatrix != 0 {
			continue // Debian 12's does not know it; genspv's compiler has looked
		}
		t.Run(k.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "k.spv")
			if err := os.WriteFile(path, k.SPIRV, 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(val, "--target-env", "vulkan1.2", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// What the decoder can read, the kernels can compute with.
func TestEveryDecodedTypeHasKernels(t *testing.T) {
	for _, typ := range quant.Types() {
		for _, op := range []string{"get_rows", "mul_mat_vec", "mul_mat"} {
			k, err := Find(op, FP32, typ)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if k.Op != op || !k.Typed || k.Type != typ || k.Name != op+"_"+strings.ToLower(typ.String()) {
				t.Errorf("%s for %s found %+v", op, typ, k)
			}
		}
	}
	if len(weightTypes) != len(quant.Types()) {
		t.Errorf("kernels for %d types, decoders for %d", len(weightTypes), len(quant.Types()))
	}
}

// Every row of the table is found by its op, variant and type.
func TestFind(t *testing.T) {
	for i := range kernels {
		k := &kernels[i]
		var of []gguf.Type
		if k.Typed {
			of = append(of, k.Type)
		}
		found, err := Find(k.Op, k.Variant, of...)
		if err != nil || found != k {
			t.Errorf("%s: found %v, %v", k.Name, found, err)
			continue
		}
		if same, ok := Lookup(k.Name); !ok || same != k {
			t.Errorf("%s: Lookup gives %v", k.Name, same)
		}
	}
	_, err := Find("kv_append", FP32, gguf.Q5_1)
	if e := (*MissingError)(nil); !errors.As(err, &e) || e.Op != "kv_append" || e.Type != "Q5_1" {
		t.Errorf("KVAppend(Q5_1): %v, want a MissingError that names op and type", err)
	}
	if _, ok := Lookup("kv_append_q5_1"); ok {
		t.Error("Lookup finds kv_append_q5_1")
	}
}

func TestWorkgroups(t *testing.T) {
	for name, c := range map[string]struct{ have, want uint64 }{
		"get_rows, part of a run":    {(&GetRowsArgs{Rows: 3, Cols: 172}).Workgroups(), 2}, // 3 rows of 22 runs
		"mul_mat, edges both ways":   {(&MulMatArgs{M: 9, N: 17}).Workgroups(4, 16), 6},
		"mul_mat, nothing":           {(&MulMatArgs{M: 9}).Workgroups(4, 16), 0},
		"rope":                       {(&RopeArgs{Rows: 2, Heads: 3, HeadDim: 64, RopeDim: 32}).Workgroups(), 2},
		"kv_append":                  {(&KVAppendArgs{Rows: 2, HeadsKV: 2, KeyLen: 64, ValLen: 32}).Workgroups(gguf.F16), 3},
		"flash_attn":                 {(&FlashAttnArgs{Rows: 5, Heads: 8}).Workgroups(), 40},
		"add beyond 32 bits of sums": {(&AddArgs{Count: 1<<32 - 1}).Workgroups(), 1 << 26},
	} {
		if c.have != c.want {
			t.Errorf("%s: %d workgroups, want %d", name, c.have, c.want)
		}
	}
	whole := (&MulMatArgs{K: 256, XStride: 260}).Whole()
	if odd := (&MulMatArgs{K: 172, XStride: 172}).Whole(); whole != 1 || odd != 0 || (&MulMatArgs{K: 256, XStride: 258}).Whole() != 0 {
		t.Errorf("Whole: %d for K 256 and stride 260, %d for K 172", whole, odd)
	}
}

// The distance of the grids from S has a sign and counts 16 bytes.
func TestSetGrids(t *testing.T) {
	const s = 1 << 40
	for _, c := range []struct {
		grids uint64
		want  uint32
		ok    bool
	}{{s + 64, 4, true}, {s - 32, ^uint32(1), true}, {s + 1<<35 - 16, 1<<31 - 1, true}, {s - 1<<35, 1 << 31, true}, {s + 1<<35, 0, false}, {s - 1<<35 - 16, 0, false}, {s + 8, 0, false}} {
		a := MulMatTeamArgs{S: s}
		if ok := a.SetGrids(c.grids); ok != c.ok || ok && a.XStride != c.want {
			t.Errorf("grids at %#x: XStride %#x, %v, want %#x, %v", c.grids, a.XStride, ok, c.want, c.ok)
		}
	}
}
