package plan

// A step of many rows uploads a layer's missing experts in waves, and computes one wave while the next one is uploaded.
const (
	WaveBytes = 64 << 20 // bytes of experts in a wave: enough for the link to run at full speed

	PrefetchWaves = 2 // waves of the next layer's experts that are uploaded while its attention runs, before its router has chosen
	PrefetchPairs = 4 // pairs (row, chosen expert) for each expert of a layer from which on a step prefetches: it then needs almost every expert
)

// ConditionalBelow is the miss rate of layers below which a step of one row runs layers without asking the host.
const ConditionalBelow = 0.5

// Stride is how many layers that run without asking the host are submitted together, where the share misses of all layers lacks an
// expert. The layers after a miss are skipped, and skipping takes time: the more misses, the fewer layers.
func Stride(misses float64) int { return min(longStride, max(1, int(0.5/max(misses, 1e-3)))) }

const longStride = 16
