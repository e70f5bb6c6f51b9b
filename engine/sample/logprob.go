package sample

import (
	"math"
	"slices"
)

// MaxLogprobs is the most alternatives that [Logprobs] lists.
const MaxLogprobs = 1024

// Logprob is a token's natural logarithm of probability.
type Logprob struct {
	ID      int32
	Logprob float64
}

// Logprobs returns the log softmax of logits, shape (V), at id, and the n most likely tokens,
// the likeliest first and the lower id among equals. Tokens that are banned (−Inf) or not
// a number have no probability; they are never listed, and id itself has −Inf then.
func Logprobs(logits []float32, id int32, n int) (of float64, top []Logprob) {
	logSum := logSumExp(logits)
	top = likeliest(logits, max(0, min(n, MaxLogprobs, len(logits))))
	for i := range top {
		top[i].Logprob -= logSum
	}
	of = math.Inf(-1)
	if within(id, logits) && logits[id] == logits[id] && !math.IsInf(float64(logits[id]), -1) {
		of = float64(logits[id]) - logSum
	}
	return of, top
}

// likeliest lists the n largest logits in order, the lower id first among equals.
func likeliest(logits []float32, n int) []Logprob {
	if n == 0 {
		return nil
	}
	top := make([]Logprob, 0, n)
	least := float32(-math.MaxFloat32)
	for i, l := range logits {
		if !(l >= least) || len(top) == n && l == least {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, float64(l), func(t Logprob, l float64) int {
			if t.Logprob >= l {
				return -1
			}
			return 1
		})
		top = slices.Insert(top[:min(len(top), n-1)], at, Logprob{int32(i), float64(l)})
		if len(top) == n {
			least = float32(top[n-1].Logprob)
		}
	}
	return top
}

// logSumExp is log Σ exp(logit); −Inf when no token has a probability.
func logSumExp(logits []float32) float64 {
	if len(logits) == 0 {
		return math.Inf(-1)
	}
	top := float64(logits[Argmax(logits)])
	if !(top > math.Inf(-1)) {
		return math.Inf(-1)
	}
	var sum float64
	for _, l := range logits {
		if x := float64(l) - top; x >= expLeast {
			sum += expOf(x, expSplit(x))
		}
	}
	return top + math.Log(sum)
}
