package shaders

// The kernels of layers with a state in place of a cache. States (Sequences, 2) holds two addresses for each sequence of a step: the
// state before its rows, and where the state after them goes. StateOff bytes, a multiple of 16, into either is a layer's part. A sequence whose first
// row is at position 0 has a state of zeros before. Rows of one sequence follow each other in order; Seq (Rows) and Pos (Rows) are uint32.

// MaxTaps is the longest convolution that ssm_conv takes, MaxState the most values of a head of gated_delta_net and of a state of ssd_scan, MaxScanState
// those of a channel's state of ssm_scan.
const (
	MaxTaps      = 4
	MaxState     = 256
	MaxScanState = 64
)

// SSMConvArgs: Dst (Rows, Cols) = silu of the convolution of each column of X with Taps weights W (Cols, Taps) float32, the last of which is the row's own,
// plus its bias B (Cols), 0 for none; with Linear 1 without silu. The state is the Taps-1 last rows of X, float32 (Taps-1, Cols).
type SSMConvArgs struct {
	X, W, B, Dst, States, Seq, Pos       uint64
	Rows, Cols, Taps, XStride, DstStride uint32
	Sequences, StateOff, Linear          uint32
}

// Workgroups counts the workgroups: one lane per column of a sequence.
func (a *SSMConvArgs) Workgroups() uint64 {
	return groups(uint64(a.Sequences)*uint64(a.Cols), lanes)
}

// GatedDeltaNetArgs: X is (Rows, KeyHeads queries, KeyHeads keys, Heads values), all heads of Head values. Each of Heads has a state S, float32 (key Head, value
// Head). A row's query and key q and k are of length 1, q divided by sqrt(Head); S fades by exp(A * softplus(alpha + Dt)); then
// S += k ⊗ (v - k·S) * sigmoid(beta); and Dst (Rows, Heads, Head) = q·S. A and Dt (Heads).
//
// Head h takes key head h / (Heads/KeyHeads), with Tiled 1 h % KeyHeads. Its beta is value h/Group*Jump + h%Group of a row of Beta, its alpha that
// of Alpha plus AlphaOff values; rows of both are GateStride apart. With ByChannel 1, Alpha is (Rows, Heads, Head) and Dt (Heads, Head): row i of a head's S fades
// by a factor of its own.
type GatedDeltaNetArgs struct {
	X, Beta, Alpha, A, Dt, Dst, States, Seq, Pos        uint64
	Rows, KeyHeads, Heads, Head, XStride, DstStride     uint32
	Tiled, GateStride, Group, Jump, AlphaOff, Sequences uint32
	StateOff, ByChannel                                 uint32
}

// Workgroups counts the workgroups: one per lanes columns of a head of a sequence.
func (a *GatedDeltaNetArgs) Workgroups() uint64 {
	return uint64(a.Sequences) * uint64(a.Heads) * groups(uint64(a.Head), lanes)
}

// SSMScanArgs: X and Dst (Rows, Channels), Delta (Rows, Channels), BC (Rows, State values B, State values C), A (Channels, State), D and Dt (Channels). Each
// channel has a state h of State values; all states are float32 (State, Channels). A row's time step is d = softplus(Delta + Dt); h becomes
// h * exp(d * A) + d * X * B; and Dst is the sum of h * C, plus D * X. Dst may be X.
type SSMScanArgs struct {
	X, Delta, BC, A, D, Dt, Dst, States, Seq, Pos uint64
	Rows, Channels, State                         uint32
	XStride, DeltaStride, BCStride, DstStride     uint32
	Sequences, StateOff, _                        uint32
}

// Workgroups counts the workgroups: one lane per channel of a sequence.
func (a *SSMScanArgs) Workgroups() uint64 {
	return groups(uint64(a.Sequences)*uint64(a.Channels), lanes)
}

// SSDScanArgs: X is (Rows, Heads * Head values x, Groups * State values B, as many C), Dst (Rows, Heads * Head), Delta (Rows, Heads), A, D and Dt (Heads). Head
// h has the B and C of group h / (Heads/Groups) and a state S, float32 (State, Head). A row's time step is d = softplus(Delta + Dt), at least DeltaMin; S
// becomes S * exp(d * A) + B ⊗ (d * x); and Dst is C · S + D * x.
type SSDScanArgs struct {
	X, Delta, A, D, Dt, Dst, States, Seq, Pos uint64
	Rows, Heads, Head, Groups, State          uint32
	XStride, DeltaStride, DstStride           uint32
	Sequences, StateOff                       uint32
	DeltaMin                                  float32
	_                                         uint32
}

// Workgroups counts the workgroups: one per lanes values of a head of a sequence.
func (a *SSDScanArgs) Workgroups() uint64 {
	return uint64(a.Sequences) * uint64(a.Heads) * groups(uint64(a.Head), lanes)
}
