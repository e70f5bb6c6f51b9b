package shaders

// rowLaneCount is the constant of kernels that reduce rows by a part of a workgroup's lanes each.
var rowLaneCount = []SpecConst{{"ROW_LANES", rowLanes, rowLanes}}

// rowFamilies are the float32 kernels of rows and of single values.
var rowFamilies = []family{
	{op: "rms_norm", args: RMSNormArgs{}, lanes: rowLanes, spec: rowLaneCount},
	{op: "norm", args: NormArgs{}, lanes: rowLanes, spec: rowLaneCount},
	{op: "soft_max", args: SoftMaxArgs{}, lanes: rowLanes},
	{op: "swiglu", args: GLUArgs{}},
	{op: "geglu", args: GLUArgs{}},
	{op: "geglu_erf", args: GLUArgs{}},
	{op: "swiglu_oai", args: SwiGLUOAIArgs{}},
	{op: "sigmoid_mul", args: SigmoidMulArgs{}},
	{op: "gelu", args: UnaryArgs{}},
	{op: "gelu_erf", args: UnaryArgs{}},
	{op: "relu2", args: UnaryArgs{}},
	{op: "xielu", args: XIELUArgs{}},
	{op: "clamp", args: ClampArgs{}},
	{op: "add", args: AddArgs{}},
	{op: "add_scaled", args: AddScaledArgs{}},
	{op: "add_rows", args: AddRowsArgs{}, types: floatTypes},
	{op: "mul", args: MulArgs{}},
	{op: "scale", args: ScaleArgs{}},
	{op: "soft_cap", args: SoftCapArgs{}},
	{op: "cpy", args: CpyArgs{}},
}
