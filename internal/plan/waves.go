package plan

// A step of many rows uploads a layer's missing experts in waves, and computes one wave while the next one is uploaded.
const (
	WaveBytes = 64 << 20 // bytes of experts in a wave: enough for full link speed

	PrefetchWaves = 2 // waves of the next layer's experts that are uploaded while its attention runs, before its router has chosen
	PrefetchPairs = 4 // a step prefetches if it has at least this many (row, chosen expert) pairs for each expert of a layer: it needs almost every expert
)

// ConditionalBelow is the miss rate of layers below which a step of one row runs layers without asking the host.
const ConditionalBelow = 0.5

// LayersPerSubmission is how many layers that run without asking the host are submitted together. missRate is the share of layers that
// miss an expert. The layers after a miss are skipped, and skipping takes time: the more misses, the fewer layers.
func LayersPerSubmission(missRate float64) int {
	return min(mostLayersPerSubmission, max(1, int(0.5/max(missRate, 1e-3))))
}

// mostLayersPerSubmission is the result of [LayersPerSubmission] if no layer misses an expert.
const mostLayersPerSubmission = 16
