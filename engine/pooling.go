package engine

import (
	"errors"
	"fmt"
	"math"

	"leat/internal/arch"
)

// Pooling is how one vector is made of the hidden states of a text's tokens.
type Pooling string

// The ways to pool.
const (
	PoolingMean  Pooling = "mean" // the mean of all tokens' hidden states
	PoolingFirst Pooling = "cls"  // that of the first token
	PoolingLast  Pooling = "last" // that of the last token
	PoolingNone  Pooling = "none" // no pooling: the hidden states of all tokens

	poolingRank Pooling = "rank" // a classifier's score of a text
)

// poolingNames has the names of the ways to pool that files can name.
var poolingNames = map[arch.Pooling]Pooling{
	arch.PoolingMean: PoolingMean, arch.PoolingFirst: PoolingFirst, arch.PoolingLast: PoolingLast, arch.PoolingNone: PoolingNone, arch.PoolingRank: poolingRank,
}

// PoolingError says that texts can't be pooled so.
type PoolingError struct {
	Found Pooling // the way that was asked for, or that the file names; "": neither
}

// Error says what was found.
func (e *PoolingError) Error() string {
	switch e.Found {
	case "":
		return "the model's file does not say how to make one vector of a text"
	case poolingRank:
		return `pooling "rank" is a score that a classifier gives, and leat has no classifiers`
	}
	return fmt.Sprintf("pooling: found %q, wanted mean, cls, last or none", string(e.Found))
}

// Hint says what to choose.
func (e *PoolingError) Hint() string {
	if e.Found == poolingRank {
		return "take a model that makes embeddings, or see its hidden states with --pooling none"
	}
	return "--pooling mean, cls, last or none chooses; the page of the model's author says which one it was trained for"
}

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *PoolingError) Unwrap() error { return errors.ErrUnsupported }

// pooled returns how to pool: as asked for or, if that is "", as the file says. Encoders whose file does not say it are pooled by mean, as is usual.
func (m *Model) pooled(asked Pooling) (Pooling, error) {
	info := m.Info()
	if asked == "" {
		asked = info.Pooling
	}
	switch asked {
	case PoolingMean, PoolingFirst, PoolingLast, PoolingNone:
		return asked, nil
	case "":
		if info.Encoder {
			return PoolingMean, nil
		}
	}
	return "", &PoolingError{Found: asked}
}

// keeps reports whether a text of n tokens needs the hidden state of token i.
func (p Pooling) keeps(i, n int) bool {
	switch p {
	case PoolingFirst:
		return i == 0
	case PoolingLast:
		return i == n-1
	}
	return true
}

// pool makes one vector of the hidden states that [Pooling.keeps] keeps, rows of the given width; with PoolingNone it returns these.
func (p Pooling) pool(hidden []float32, width int) []float32 {
	n := len(hidden) / width
	if p != PoolingMean || n < 2 {
		return hidden
	}
	mean := make([]float32, width)
	for c := range mean {
		sum := 0.0
		for i := range n {
			sum += float64(hidden[i*width+c])
		}
		mean[c] = float32(sum / float64(n))
	}
	return mean
}

// normalise gives each row of x, of the given width, the length 1. A row of zeros stays.
func normalise(x []float32, width int) {
	for ; len(x) > 0; x = x[width:] {
		squares := 0.0
		for _, v := range x[:width] {
			squares += float64(v) * float64(v)
		}
		if squares == 0 {
			continue
		}
		length := math.Sqrt(squares)
		for c, v := range x[:width] {
			x[c] = float32(float64(v) / length)
		}
	}
}
