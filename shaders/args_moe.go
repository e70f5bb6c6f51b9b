package shaders

// The kernels of mixtures of experts. A row of a step uses Used experts; row r's k'th, by rank, is pair r*Used + k.

// Gatings of topk_moe: what the experts' weights are made of.
const (
	GateSoftMax = iota // softmax of all scores
	GateSigmoid        // sigmoid of each
	GateLate           // softmax of the scores of the chosen ones
	GateSparse         // of each chosen one, its share of the softmax of the scores at most 2 % below its own, without those of experts chosen before it; topk_moe alone has it

	GateNormalised = 4 // beside one of these: a row's weights come to 1
)

// MaxExperts is the most experts of a layer that topk_moe takes.
const MaxExperts = 1024

// TopKMoEArgs chooses experts by X (Rows, Experts): IDs (Rows, Used) uint32, the best first, and their Weights (Rows, Used).
// Bias (Experts), 0 for none, is added where they are chosen, not where they are weighed. Of Groups groups, 0 for none, those
// GroupsUsed are open whose GroupBest best, 1 or 2, have the largest sum. All weights are times Scale, and times their expert's of Scales (Experts), 0
// for none. Residents, 0 for none, is the table in which the experts
// of a single row are looked up, as in [LookupExpertsArgs].
type TopKMoEArgs struct {
	X, Bias, IDs, Weights, Residents, Scales        uint64
	Rows, Experts, Used, Gating, Groups, GroupsUsed uint32
	Scale                                           float32
	GroupBest                                       uint32
}

// Workgroups counts the workgroups: one per row.
func (a *TopKMoEArgs) Workgroups() uint64 { return uint64(a.Rows) }

// TopKMoERoutedArgs is [TopKMoEArgs] of scores that are made on the way: Dst (Rows, Cols) = X (Rows, Cols) normalised, times W
// (Cols), also as Bytes of [Q8Size], and Scores (Rows, Experts) = Dst · Routerᵀ, Router (Experts, Cols) typed. Counters (Rows)
// uint32 are 0 before and after.
type TopKMoERoutedArgs struct {
	X, W, Router, Dst, Bytes, Scores, Bias, IDs, Weights, Counters, Residents uint64
	Rows, Cols, Experts, Used, Gating, Groups, GroupsUsed                     uint32
	Scale                                                                     float32
	GroupBest                                                                 uint32
	Eps                                                                       float32
}

// Workgroups counts the workgroups of a pipeline of which each has so many experts: for each row those, and one.
func (a *TopKMoERoutedArgs) Workgroups(experts uint32) uint64 {
	return uint64(a.Rows) * (groups(uint64(a.Experts), uint64(experts)) + 1)
}

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
// First or above and below Last; other rows stay as they are. Table (experts), on 8 bytes, holds the addresses of the experts' W;
// rows of an expert whose address is 0 stay as they are, too.
//
// Blocks is how many columns the grid has: mul_mat_vec_id's are the pairs, whose experts are IDs; mul_mat_id's are Tiles, which
// group_experts made with as many Cols as NUM_COLS, and Pairs.
type MulMatIDArgs struct {
	Table, X, Dst, IDs, Pairs, Tiles, Grids uint64
	M, K, Count, Used                       uint32
	XStride, DstStride, First, Last         uint32
	Blocks, _                               uint32
}

// Workgroups counts the workgroups of a pipeline whose NUM_ROWS is rows.
func (a *MulMatIDArgs) Workgroups(rows uint32) uint64 {
	return groups(uint64(a.M), uint64(rows)) * uint64(a.Blocks)
}

// MulMatTeamIDArgs is [MulMatTeamArgs] for pairs of rows and experts: Dst0 (pairs, M0), where the pair's expert is First or
// above and below Last; a pair takes row pair / Used of X, bytes, with their S. W0 and, with GLU, W1 are tables of the addresses
// of experts' W (M0, K); pairs of an expert whose address is 0 are left out. With GLU 2 the pairs' bytes are Q at Dst1 and S at Dst2.
//
// Of a pipeline with one column Blocks is the number of pairs, whose experts are IDs; of others that of Tiles, as in
// [MulMatIDArgs].
type MulMatTeamIDArgs struct {
	W0, W1, Dst0, Dst1, Dst2, X, S, IDs, Pairs, Tiles, Grids uint64
	M0, K, Blocks, Used                                      uint32
	DstStride, First, Last, _                                uint32
}

// Workgroups counts the workgroups of a pipeline that makes so many rows of the output in each.
func (a *MulMatTeamIDArgs) Workgroups(rows uint32) uint64 {
	return groups(uint64(a.M0), uint64(rows)) * uint64(a.Blocks)
}

// MulMatIDCMArgs: Dst (pairs, M) = X · Wᵀ of each pair's expert, where that is First or above, below Last and has an address; a
// pair takes row pair / Used of X (.., K), in tiles, times its Scales. W0 is a table of the addresses of experts' W (M, K)
// typed. With GLU it is silu(X · W0ᵀ) * (X · W1ᵀ).
//
// Blocks is how many Tiles there are, of up to BN of Pairs each.
type MulMatIDCMArgs struct {
	W0, W1, X, Scales, Dst, Pairs, Tiles, Grids uint64
	M, K, Blocks, Used                          uint32
	DstStride, First, Last, _                   uint32
}

// Workgroups counts the workgroups of a pipeline that makes so many rows of the output in each.
func (a *MulMatIDCMArgs) Workgroups(rows uint32) uint64 {
	return groups(uint64(a.M), uint64(rows)) * uint64(a.Blocks)
}

// SumExpertsArgs: Dst (Rows, Cols) = Y (Rows, Used, Cols) times Weights (Rows, Used), 0 for none, summed up by rank, + Residual (Rows, Cols),
// 0 for none, whose stride is Dst's; Dst may be Residual.
type SumExpertsArgs struct {
	Y, Weights, Residual, Dst   uint64
	Rows, Used, Cols, DstStride uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *SumExpertsArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Cols), lanes)
}

// PairScaleArgs: Dst (Rows, Used, Cols) = X (Rows, Cols), times each of the row's Weights (Rows, Used).
type PairScaleArgs struct {
	X, Weights, Dst uint64
	Rows, Used      uint32
	Cols, _         uint32
}

// Workgroups counts the workgroups: one lane per value.
func (a *PairScaleArgs) Workgroups() uint64 {
	return groups(uint64(a.Rows)*uint64(a.Used)*uint64(a.Cols), lanes)
}

// ResidentsHead is the number of addresses at the head of a table of resident experts, before the experts' own, see [LookupExpertsArgs].
const ResidentsHead = 2

// LookupExpertsArgs: Residents (ResidentsHead + experts) uint64, on 8 bytes, is a table of two addresses for results, then the address of each expert's W, 0 if
// it is not in VRAM. The first result (1) uint32 becomes 1 if no expert of IDs (Count) has the address 0, else 0. The second result (1 + Count) uint32, which
// may be in host memory, becomes the same flag, then IDs.
type LookupExpertsArgs struct {
	Residents, IDs uint64
	Count, _       uint32
}

// Workgroups counts the workgroups: one for all.
func (a *LookupExpertsArgs) Workgroups() uint64 { return min(1, uint64(a.Count)) }
