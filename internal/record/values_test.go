package record

import (
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/submit"
	"leat/vk"
)

// valuesFrame is a frame of 5 rows whose recorder is dry: it checks arguments. Weights are of type F32.
func valuesFrame(t *testing.T) *Frame {
	t.Helper()
	device := &vk.Device{Physical: &vk.PhysicalDevice{Limits: vk.Limits{MaxPushConstants: 256, MaxWorkgroupInvocations: 256, MaxWorkgroups: [3]uint32{65535, 65535, 65535}}}}
	k, err := kernels.New(device, kernels.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &arch.Hyper{EmbeddingLength: 64, VocabSize: 100, RMSEpsilon: 1e-5, NormEpsilon: 1e-5, RowScale: arch.RowScale{Factor: 0.1, Length: 8192}, Mamba: arch.Mamba{Inner: 64, State: 16, Taps: 4},
		Layers: []arch.LayerShape{{HeadCount: 4, HeadCountKV: 1, KeyLength: 16, ValueLength: 16, FeedForwardLength: 96}}}
	m := &Model{Hyper: h, Scratch: &plan.Scratch{}, KV: &plan.KV{Layers: make([]plan.KVLayer, 1)}, Base: 1 << 40}
	for v := range m.Scratch.Values {
		m.Scratch.Values[v].Off = int64(v) << 20
	}
	f := &Frame{Model: m, Commands: submit.NewDryCommands(), Rec: k.Dry(), StepRows: StepRows{N: 5}, Batch: Batch{Sequences: 1, MaxPages: 1}}
	f.Tensor = func(name string) (*pack.Tensor, uint64, error) {
		return &pack.Tensor{Name: name, Type: gguf.F32}, 1 << 50, nil
	}
	f.SetRows(Rows{N: 5, Role: kernels.Prompt, Longest: 5})
	return f
}

// The arguments that kernels get for operations on values suit them, with all options.
func TestValueOps(t *testing.T) {
	f := valuesFrame(t)
	for name, o := range map[string]arch.Op{
		"norm":                   {Kind: arch.RMSNorm, Dst: arch.Norm, A: arch.X, Weight: "w", Heads: 1, Cols: 64, Multiplied: true},
		"norm without weights":   {Kind: arch.RMSNorm, Dst: arch.Q, A: arch.Q, Heads: 4, Cols: 16, Factor: 0.25},
		"norm of heads":          {Kind: arch.RMSNorm, Dst: arch.Q, A: arch.Q, Weight: "w", Heads: 4, Cols: 16, PerHead: true},
		"layer norm":             {Kind: arch.LayerNorm, Dst: arch.Norm, A: arch.X, Weight: "w", Weight2: "b", Heads: 1, Cols: 64},
		"layer norm, no weights": {Kind: arch.LayerNorm, Dst: arch.Norm, A: arch.X, Heads: 1, Cols: 64},
		"gated by gelu":          {Kind: arch.GeGLU, Dst: arch.Gate, A: arch.Gate, B: arch.Up},
		"gated by exact gelu":    {Kind: arch.GeGLUErf, Dst: arch.Gate, A: arch.Gate, B: arch.Up},
		"gelu":                   {Kind: arch.Act, Activation: arch.GELU, Dst: arch.Gate, A: arch.Gate},
		"exact gelu":             {Kind: arch.Act, Activation: arch.GELUErf, Dst: arch.Gate, A: arch.Gate},
		"relu2":                  {Kind: arch.Act, Activation: arch.ReLU2, Dst: arch.Gate, A: arch.Gate},
		"xielu":                  {Kind: arch.Act, Activation: arch.XIELU, Dst: arch.Gate, A: arch.Gate, Params: [4]float32{1, 1, 0.5, -1e-6}},
		"clamp":                  {Kind: arch.Act, Activation: arch.Clamp, Dst: arch.Q, A: arch.Q, Params: [4]float32{-8, 8}},
		"sum":                    {Kind: arch.Add, Dst: arch.X, A: arch.X, B: arch.Out},
		"sum with a factor":      {Kind: arch.Add, Dst: arch.X, A: arch.X, B: arch.Out, Factor: 0.22},
		"product":                {Kind: arch.Mul, Dst: arch.ConvIn, A: arch.ConvB, B: arch.ConvIn},
		"product with weights":   {Kind: arch.MulWeight, Dst: arch.X, A: arch.X, Weight: "w", Cols: 64},
		"product with a weight":  {Kind: arch.MulWeight, Dst: arch.X, A: arch.X, Weight: "w", Cols: 1},
		"scale":                  {Kind: arch.Scale, Dst: arch.X, A: arch.X, Factor: 8},
		"scale by position":      {Kind: arch.ScaleRows, Dst: arch.Q, A: arch.Q},
		"learned positions":      {Kind: arch.AddRows, Dst: arch.X, Weight: "w"},
		"scaled logits":          {Kind: arch.ScaleLogits, Dst: arch.Logits, A: arch.Logits, Factor: 0.5},
		"capped logits":          {Kind: arch.ScaleLogits, Dst: arch.Logits, A: arch.Logits, SoftCap: 30},
		"copy of heads":          {Kind: arch.HeadCopy, Dst: arch.Q, A: arch.Q, Heads: 4, Cols: 4, OffA: 4, Off: 12},
		"copy of one head":       {Kind: arch.HeadCopy, Dst: arch.Q, A: arch.K, Heads: 4, Cols: 8, OffA: 8, OneHead: true},
		"convolution":            {Kind: arch.SSMConv, Dst: arch.ConvIn, A: arch.ConvIn, Weight: "w", Weight2: "b", Cols: 3, Linear: true},
		"scan of Mamba 1":        {Kind: arch.SelectiveScan, Dst: arch.SSMOut, A: arch.SSMMixed, B: arch.SSMBC, Weight: "a", Weight2: "d", Weight3: "dt"},
	} {
		if err := f.Op(&o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Hyper.Mamba = arch.Mamba{Inner: 64, State: 16, Taps: 4, Heads: 4, Groups: 2}
	if err := f.Op(&arch.Op{Kind: arch.StateSpace, Dst: arch.SSMOut, A: arch.SSMMixed, B: arch.SSMDelta, Weight: "a", Weight2: "d", Weight3: "dt", DeltaMin: 0.001}); err != nil {
		t.Errorf("scan of Mamba 2: %v", err)
	}
	if err := f.Op(&arch.Op{Kind: arch.Act, Dst: arch.Gate, A: arch.Gate}); err == nil {
		t.Error("an operation without an activation was recorded")
	}
}
