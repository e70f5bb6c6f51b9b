package kernels

import (
	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// routedLanes is the most lanes of a workgroup of topk_moe_routed on a GPU. With teams of 64 lanes a layer of 128 experts then takes 32 workgroups, and one more
// that stores the row.
const routedLanes = 256

// routedChoice is the pipeline of topk_moe_routed for a router of type t, of experts rows of cols values. Its sums have the same order as those of the separate
// norm and product.
func routedChoice(r *Recorder, t gguf.Type, experts, cols uint32) choice {
	tile := r.Override.Tile
	if tile == (Tile{}) {
		tile = Tile{Rows: 1, Team: teamChoice(r, shaders.Wide, t, shaders.NoGLU, 1, experts, cols).tile.Team, Lanes: min(routedLanes, normLanes(r))}
		tile.Unroll = min(shaders.MaxAhead, (cols/8+tile.Team-1)/tile.Team)
	}
	lanes := max(1, tile.Lanes)
	return choice{op: "topk_moe", variant: shaders.Routed, typed: true, typ: t, tile: tile, per: (cols/4 + lanes - 1) / lanes, rowLanes: normLanes(r)}
}

// routedShared is an upper bound of the shared memory, in bytes, of topk_moe_routed.
func routedShared(c *choice) int64 {
	return 16*int64(c.per)*int64(c.tile.Lanes) + int64(c.rowLanes) + 16*shaders.MaxRouted + 8*int64(c.tile.Lanes) + 256
}

// RoutedTopK is a norm, the product with a router, and the choice of each row's experts by the scores. The caller need not set Bytes and Counters: they come
// from [Recorder].Memory.
type RoutedTopK struct {
	Router gguf.Type // type of the router's weights
	shaders.TopKMoERoutedArgs
}

// routedVariants are the ways to record [RoutedTopK] as one.
var routedVariants = []*variant[RoutedTopK]{&routedTopK}

// RouteNormed records a norm, a router and the choice of experts as one dispatch, which also stores Dst as int8 for the products that follow.
// done is false, and nothing is recorded, if no variant fits.
func RouteNormed(r *Recorder, a *RoutedTopK) (done bool, err error) {
	r.args.routed = *a
	return recordBy(r, routedVariants, &r.args.routed)
}

// routedTopK runs workgroups that each normalise the whole row and compute a few scores; the last one that ends chooses the experts. On a CPU separate
// kernels are faster.
var routedTopK = variant[RoutedTopK]{
	Rule: Rule{
		Op: "topk_moe", Variant: shaders.Routed,
		When:  "decode, up to 8 rows: after a norm and the product of a router of F32, F16 or BF16, rows of whole blocks of 32, up to 512 experts",
		Needs: needsBytes + ", shared memory for a row; no CPU", lacks: lacksRoutedTopK, kernels: []string{"topk_moe_routed"},
	},
	unfit:  unfitRouted,
	record: recordRouted,
}

// unfitRouted says why topk_moe_routed can't record a, "" if it can.
func unfitRouted(r *Recorder, a *RoutedTopK) string {
	switch {
	case r.Rows.Role != Decode || a.Rows > shaders.FewRows:
		return "rows of a prompt"
	case r.k.TeamVariant(a.Router, a.Cols) != shaders.Wide:
		return "another type of router"
	case r.k.tuned.Load().prefersFP32(a.Router, a.Cols):
		return "float32 was faster when tuned"
	case a.Experts == 0 || a.Experts > shaders.MaxRouted || a.Cols == 0 || a.Cols%q8Block != 0:
		return "more than 512 experts, or rows that are no whole blocks of 32"
	case shaders.Q8Size(a.Rows, a.Cols) > r.q8Room() || 4*int64(a.Rows) > r.Memory.Counters.Bytes:
		return "there is no memory for bytes or counters"
	}
	c := routedChoice(r, a.Router, a.Experts, a.Cols)
	switch {
	case c.per > shaders.MaxPer || c.tile.Team > c.tile.Lanes || c.rowLanes%c.tile.Lanes != 0 || routedShared(&c) > r.k.can.shared:
		return "a row is too long for a workgroup"
	case !r.usable(c):
		return failedTest
	}
	return ""
}

// lacksRoutedTopK says what the device lacks for topk_moe_routed, "" if nothing.
func lacksRoutedTopK(k *Kernels) string {
	if lacks := lacksBytes(k); lacks != "" || k.can.fusesRouter {
		return lacks
	}
	return "workgroups that run side by side"
}

// fusesRouter reports whether topk_moe_routed is worth using on a device: on a CPU separate kernels are faster. forced overrides that, for tests.
func fusesRouter(p *vk.PhysicalDevice, forced bool) bool { return forced || p.Type != vk.CPU }

// recordRouted records a as one topk_moe_routed.
func recordRouted(r *Recorder, a *RoutedTopK) error {
	if a.Rows == 0 {
		return nil
	}
	to := r.q8Slot(a.Dst, a.Rows, a.Cols, a.Cols, 0)
	if to == nil {
		return &ArgError{"topk_moe_routed", "Q8", r.Memory.Q8.Bytes, "twice the Q8Size of X"}
	}
	a.Bytes, a.Counters = to.q, r.Memory.Counters.Address
	if err := TopKMoERouted(r, a.Router, a.TopKMoERoutedArgs); err != nil {
		return err
	}
	to.valid = true
	return nil
}

// TopKMoERouted records one topk_moe_routed.
func TopKMoERouted(r *Recorder, t gguf.Type, a shaders.TopKMoERoutedArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: routedChoice(r, t, a.Experts, a.Cols)}
	checkRouted(&c, &a, r.k.dev.Physical.Limits.MaxWorkgroupInvocations)
	n, k := float64(a.Rows), float64(a.Cols)
	router := float64(a.Experts) * rowBytes(t, a.Cols)
	var touched touch
	touched.read(f32s(a.X, a.Rows, a.Cols, a.Cols))
	touched.read(f32s(a.W, 1, a.Cols, 0))
	touched.read(span{a.Router, a.Router + uint64(router)})
	if a.Bias != 0 {
		c.address("Bias", a.Bias)
		touched.read(f32s(a.Bias, 1, a.Experts, 0))
	}
	c.lookup(a.Residents, a.Rows, &touched)
	touched.write(f32s(a.Dst, a.Rows, a.Cols, a.Cols))
	touched.write(span{a.Bytes, a.Bytes + uint64(shaders.Q8Size(a.Rows, a.Cols))})
	touched.write(f32s(a.Scores, a.Rows, a.Experts, a.Experts))
	touched.write(f32s(a.IDs, a.Rows, a.Used, a.Used))
	touched.write(f32s(a.Weights, a.Rows, a.Used, a.Used))
	touched.write(f32s(a.Counters, 1, a.Rows, 0))
	if c.err != nil {
		return c.err
	}
	groups := a.Workgroups(c.tile.Lanes / c.tile.Team)
	co := cost{bytes: router + n*(9*k+8*float64(a.Experts)), flops: n * (8*k + 2*k*float64(a.Experts) + 8*float64(a.Experts))}
	return record(r, &c, &a, groups, &touched, co)
}

// checkRouted checks the arguments of a topk_moe_routed, whose workgroups may have at most most lanes.
func checkRouted(c *check, a *shaders.TopKMoERoutedArgs, most uint32) {
	for _, x := range [...]struct {
		name string
		at   uint64
	}{{"X", a.X}, {"W", a.W}, {"Router", a.Router}, {"Dst", a.Dst}, {"Bytes", a.Bytes}, {"Counters", a.Counters}} {
		c.address(x.name, x.at)
	}
	c.words("Scores", a.Scores)
	c.words("IDs", a.IDs)
	c.words("Weights", a.Weights)
	c.positive("Cols", a.Cols)
	c.multiple("Cols", a.Cols, q8Block)
	c.atMost("Rows", a.Rows, shaders.FewRows)
	c.atMost("Experts", a.Experts, shaders.MaxRouted)
	c.atMost("Gating", a.Gating&^shaders.GateNormalised, shaders.GateLate)
	if !(a.Eps >= 0) {
		c.require(false, "Eps", a.Eps, "0 or more")
	}
	c.chooses(&shaders.TopKMoEArgs{Experts: a.Experts, Used: a.Used, Gating: a.Gating, Groups: a.Groups, GroupsUsed: a.GroupsUsed, GroupBest: a.GroupBest})
	c.power("Tile.Lanes", c.tile.Lanes, 32, most)
	c.power("Tile.Team", c.tile.Team, minSubgroup, c.tile.Lanes)
	if c.err == nil {
		c.atMost("Cols", a.Cols, shaders.MaxPer*c.tile.Lanes*4)
		c.multiple("the norm's lanes", c.rowLanes, c.tile.Lanes)
	}
}
