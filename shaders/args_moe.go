package shaders

// The kernels of mixtures of experts. A row of a step uses Used experts; row r's k'th, by rank, is pair r*Used + k.

// Gatings of topk_moe: what the experts' weights are made of.
const (
	GateSoftMax = iota // softmax of all scores
	GateSigmoid        // sigmoid of each
	GateLate           // softmax of the scores of the chosen ones
)

// MaxExperts is the most experts of a layer that topk_moe takes.
const MaxExperts = 1024

// TopKMoEArgs chooses experts by X (Rows, Experts): IDs (Rows, Used) uint32, the best first, and their Weights (Rows, Used).
// Bias (Experts), 0 for none, is added where they are chosen, not where they are weighed. Of Groups groups, 0 for none, those
// GroupsUsed are open whose GroupBest best, 1 or 2, have the largest sum. With Normalise 1 a row's weights come to 1; all are times Scale.
type TopKMoEArgs struct {
	X, Bias, IDs, Weights                                      uint64
	Rows, Experts, Used, Gating, Normalise, Groups, GroupsUsed uint32
	Scale                                                      float32
	GroupBest, _                                               uint32
}

// Workgroups counts the workgroups: one per row.
func (a *TopKMoEArgs) Workgroups() uint64 { return uint64(a.Rows) }

// GroupExpertsArgs sorts pairs by their experts IDs (Count): Pairs (Count) uint32, and Tiles, as many as [ExpertTiles] says,
// each four uint32: an expert, where in Pairs its pairs begin, how many, at most Cols, and 0.
type GroupExpertsArgs struct {
	IDs, Pairs, Tiles uint64
	Count, Experts    uint32
	Cols, _           uint32
}

// Workgroups counts the workgroups: one per expert.
func (a *GroupExpertsArgs) Workgroups() uint64 { return uint64(a.Experts) }

// ExpertCols is how many rows of X mul_mat_id takes for an expert at a time.
const ExpertCols = 8

// ExpertTiles is into how many tiles of up to cols pairs so many pairs of experts are cut, empty ones too.
func ExpertTiles(pairs, experts, cols uint32) uint32 { return pairs/cols + experts }

// TileBytes is what a tile of group_experts takes.
const TileBytes = 16

// MulMatIDArgs: Dst (Count, M): row p is row p / Used of X (.., K) times Wᵀ of the pair's expert, W (M, K) typed, where that is
// First or above and below Last; other rows stay as they are. Table (experts), on 8 bytes, holds the addresses of the experts' W.
//
// Blocks is how many columns the grid has: mul_mat_vec_id's are the pairs, whose experts are IDs; mul_mat_id's are Tiles, which
// group_experts made with as many Cols as NUM_COLS, and Pairs.
type MulMatIDArgs struct {
	Table, X, Dst, IDs, Pairs, Tiles uint64
	M, K, Count, Used                uint32
	XStride, DstStride, First, Last  uint32
	Blocks, _                        uint32
}

// Workgroups counts the workgroups of a pipeline whose NUM_ROWS is rows.
func (a *MulMatIDArgs) Workgroups(rows uint32) uint64 {
	return groups(uint64(a.M), uint64(rows)) * uint64(a.Blocks)
}

// SumExpertsArgs: Dst (Rows, Cols) = Y (Rows, Used, Cols) times Weights (Rows, Used), summed up by rank, + Residual (Rows, Cols),
// 0 for none, whose stride is Dst's; Dst may be Residual.
type SumExpertsArgs struct {
	Y, Weights, Residual, Dst   uint64
	Rows, Used, Cols, DstStride uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *SumExpertsArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Cols), lanes)
}
