package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// expertVariants are the ways to record [ExpertProducts], the best first.
var expertVariants = []*variant[ExpertProducts]{&bytesExperts, &tilesExperts, &vecExperts, &matExperts}

// MultiplyExperts records products of (row, expert) pairs by the first variant that fits. done is false, and nothing is recorded, if no variant
// computes them as one; without Up one always does.
//
// p.Pairs and p.Tiles are memory for the pairs sorted by expert; Tiles has room for [shaders.ExpertTiles] tiles of ExpertCols pairs. The recorder sorts the
// pairs for kernels that need it.
func MultiplyExperts(r *Recorder, p *ExpertProducts) (done bool, err error) {
	r.args.experts = *p
	return recordBy(r, expertVariants, &r.args.experts)
}

// MulMatID multiplies each pair's row of X by the weights of its expert. experts is the number of experts of the layer.
func MulMatID(r *Recorder, t gguf.Type, a shaders.MulMatIDArgs, experts uint32) error {
	_, err := MultiplyExperts(r, &ExpertProducts{Type: t, Experts: experts, MulMatIDArgs: a})
	return err
}
