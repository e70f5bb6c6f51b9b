package decompose

import (
	"fmt"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/gguf/quant"
)

// NotFiniteError says that a tensor of the source holds NaN or an infinity.
type NotFiniteError struct {
	Tensor string
	Expert int64 // whose part it is; -1: of no expert
	Block  int64 // of the tensor, from 0; of F32, F16 and BF16 the value
}

func (e *NotFiniteError) Error() string {
	of := ""
	if e.Expert >= 0 {
		of = fmt.Sprintf(" of expert %d", e.Expert)
	}
	return fmt.Sprintf("tensor %q%s: found NaN or an infinity in block %d, wanted finite numbers", e.Tensor, of, e.Block)
}

// Hint says what to do.
func (e *NotFiniteError) Hint() string {
	return "the file is damaged, or was converted from a damaged one: download or convert it again; --force copies it as it is"
}

// checkFinite looks at those blocks of f that lie whole in p, the bytes from off on, or end there. Chunks begin at multiples of a
// power of two, so that no number lies in two.
func checkFinite(f *outFile, p []byte, off int64) error {
	records, each := max(f.Records, 1), f.RecordBytes
	for r := range records {
		expert := int64(-1)
		if f.Kind == pack.Experts {
			expert = r
		}
		if base := r * each; each > 0 && (base >= off+int64(len(p)) || base+each <= off) {
			continue
		}
		for i := range f.Tensors {
			t := &f.Tensors[i]
			block, err := firstBroken(t, p, off-r*each-t.Offset)
			if err != nil {
				return err
			}
			if block >= 0 {
				return &NotFiniteError{Tensor: t.Name, Expert: expert, Block: block}
			}
		}
	}
	return nil
}

// firstBroken is the first block of t with NaN or an infinity in p, which are bytes from `from` on of the tensor, or before it; -1: none.
func firstBroken(t *pack.TensorEntry, p []byte, from int64) (int64, error) {
	typ, err := gguf.ParseType(t.Type)
	if err != nil {
		return -1, err
	}
	begin, end := max(from, 0), min(from+int64(len(p)), t.Bytes)
	if begin >= end {
		return -1, nil
	}
	return quant.FirstBroken(typ, p[begin-from:end-from], begin), nil
}
