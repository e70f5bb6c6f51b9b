package expertcache

import (
	"math"
	"math/rand/v2"
)

// Synthetic is routing without a model, to try policies with: in each layer experts are chosen with
// probabilities that fall as a power of their rank, and now and then the topic, the order of ranks,
// changes for a part of them. Real routers differ.
type Synthetic struct {
	Layers, Experts, Used int
	Skew                  float64 // 0: uniform; 1: as Zipf has it
	TopicSteps            int     // steps until the topic changes; 0: it doesn't
	TopicShare            float64 // part of the experts whose rank changes then
	Seed                  uint64
}

// Routing makes a trace: a prompt of rows, if there are any, then so many steps of one row.
func (o Synthetic) Routing(promptRows, steps int) *Routing {
	rng := rand.New(rand.NewPCG(o.Seed, 0x6c656174))
	t := &Routing{Header: Header{Format: RoutingFormat, Model: "synthetic", Layers: o.Layers, Experts: o.Experts, Used: o.Used}}
	ranks := make([][]int, o.Layers)
	for l := range ranks {
		ranks[l] = rng.Perm(o.Experts)
	}
	weights := make([]float64, o.Experts)
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -o.Skew)
	}
	if promptRows > 0 {
		t.Steps = append(t.Steps, o.step(rng, promptRows, ranks, weights))
	}
	for i := range steps {
		if o.TopicSteps > 0 && i > 0 && i%o.TopicSteps == 0 {
			for l := range ranks {
				shuffleSome(rng, ranks[l], o.TopicShare)
			}
		}
		t.Steps = append(t.Steps, o.step(rng, 1, ranks, weights))
	}
	return t
}

func shuffleSome(rng *rand.Rand, list []int, share float64) {
	var some []int
	for i := range list {
		if rng.Float64() < share {
			some = append(some, i)
		}
	}
	for i, j := range rng.Perm(len(some)) {
		list[some[i]], list[some[j]] = list[some[j]], list[some[i]]
	}
}

// step draws without putting back: the Used largest of weight^(1/u) (Efraimidis and Spirakis).
func (o Synthetic) step(rng *rand.Rand, rows int, ranks [][]int, weights []float64) Step {
	s := Step{Rows: rows, IDs: make([]uint16, 0, rows*o.Layers*o.Used)}
	keys := make([]float64, o.Experts)
	for range rows {
		for l := range o.Layers {
			for i := range keys {
				keys[i] = math.Log(1-rng.Float64()) / weights[i]
			}
			for range o.Used {
				best := 0
				for i := range keys {
					if keys[i] > keys[best] {
						best = i
					}
				}
				keys[best] = math.Inf(-1)
				s.IDs = append(s.IDs, uint16(ranks[l][best]))
			}
		}
	}
	return s
}
