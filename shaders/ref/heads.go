package ref

import "leat/gguf"

// MulMatHeads is [MulMat] for each head: the matrices of type t, (M, K) each, lie one behind another in w; heads of x begin xHead values apart, those of
// dst dstHead.
func MulMatHeads(t gguf.Type, dst Mat /* (N, ..) */, w []byte, x Mat /* (N, ..) */, heads, m, k, xHead, dstHead int) error {
	each := len(w) / heads
	for h := range heads {
		part := func(x Mat, from, cols int) Mat { return Mat{x.Data[from:], x.Rows, cols, x.Stride} }
		if err := MulMat(t, part(dst, h*dstHead, m), w[h*each:(h+1)*each], part(x, h*xHead, k)); err != nil {
			return err
		}
	}
	return nil
}
