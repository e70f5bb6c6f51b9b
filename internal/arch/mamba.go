package arch

// Mamba is the hyperparameters of selective state spaces: Mamba 1 (Gu and Dao 2023, arXiv:2312.00752) or Mamba 2 (Dao and Gu 2024, arXiv:2405.21060). Inner is 0 if
// the model has neither.
type Mamba struct {
	Inner  int // Di: inner width
	State  int // Ns: size of a state, for each value of the inner width
	Taps   int // positions that the convolution before the scan sees
	Rank   int // R of Mamba 1: size of what time steps are computed from
	Heads  int // Hm of Mamba 2: each has one time step; 0: it is Mamba 1
	Groups int // G of Mamba 2: heads of a group share B and C
}

// Channels is the number of values of a row that the convolution reads: u of Mamba 1; x, B and C of Mamba 2.
func (m *Mamba) Channels() int {
	if m.Heads == 0 {
		return m.Inner
	}
	return m.Inner + 2*m.Groups*m.State
}

// width is [Hyper.Width] of the values from SSMGate to SSMOut.
func (m *Mamba) width(v Value) int {
	switch v {
	case SSMIn, SSMMixed:
		return m.Channels()
	case SSMDelta:
		if m.Heads > 0 {
			return m.Heads
		}
	case SSMLow:
		return m.Rank
	case SSMBC:
		return 2 * m.State
	}
	return m.Inner
}
