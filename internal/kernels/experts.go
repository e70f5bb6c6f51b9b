package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// expertVariants are the ways to record [ExpertProducts], the best first.
var expertVariants = []*variant[ExpertProducts]{&bytesExperts, &tilesExperts, &vecExperts, &matExperts}

// MultiplyExperts records products of pairs of rows and experts by the first variant that fits them. done is false where none computes
// them as one: without Up there is always one.
//
// Pairs and Tiles, of [shaders.ExpertTiles] by ExpertCols, are places for the pairs sorted by expert, which the recorder does at need.
func MultiplyExperts(r *Recorder, p *ExpertProducts) (done bool, err error) {
	r.asked.experts = *p
	return recordBy(r, expertVariants, &r.asked.experts)
}

// MulMatID multiplies each pair's row of X by the weights of its expert, one of so many.
func MulMatID(r *Recorder, t gguf.Type, a shaders.MulMatIDArgs, experts uint32) error {
	_, err := MultiplyExperts(r, &ExpertProducts{Type: t, Experts: experts, MulMatIDArgs: a})
	return err
}
