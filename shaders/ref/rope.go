package ref

// Rope turns pairs of each head's first ropeDim values by the angles of cosSin, in place; the rest of the head stays.
// Neox pairs (i, i+ropeDim/2), else (2i, 2i+1). Base frequency, frequency factors and YaRN are in the table already.
func Rope(x Mat /* (T, H*Dk) */, cosSin []float32 /* (T, Dr/2, 2) */, headDim, ropeDim int, neox bool) {
	half := ropeDim / 2
	for r := range x.Rows {
		row := x.Row(r)
		for head := 0; head < len(row); head += headDim {
			for i := range half {
				a, b := head+2*i, head+2*i+1
				if neox {
					a, b = head+i, head+i+half
				}
				c, s := float64(cosSin[(r*half+i)*2]), float64(cosSin[(r*half+i)*2+1])
				va, vb := float64(row[a]), float64(row[b])
				row[a], row[b] = float32(va*c-vb*s), float32(va*s+vb*c)
			}
		}
	}
}
