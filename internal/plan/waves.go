package plan

// How a layer's missing experts come in a step of many rows.
const (
	WaveBytes  = 64 << 20 // what comes together: enough for the link to run at full speed
	EarlyWaves = 2        // so many waves of the next layer come while its attention runs, before its router has chosen
	AlmostAll  = 4        // pairs of rows and experts for each expert from which on a step needs almost every expert, so that waves come early
)

// ConditionalBelow is the miss rate of layers below which a step of one row runs them without asking the host.
const ConditionalBelow = 0.5

// Stride is how many layers that run without asking the host are submitted together where the part misses of them misses an expert:
// what is left out after a miss takes time as well.
func Stride(misses float64) int { return min(longStride, max(1, int(0.5/max(misses, 1e-3)))) }

const longStride = 16
