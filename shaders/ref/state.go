package ref

import "math"

// SSMConv convolves each column of x with its weights, the last of which is the row's own, adds its bias, nil for none, and takes silu of it unless it is linear;
// state is the rows of x before the first, and becomes those before the next.
func SSMConv(dst, x Mat /* (T, C) */, w Mat /* (C, Taps) */, b []float32 /* (C) */, linear bool, state Mat /* (Taps-1, C) */) {
	for c := range x.Cols {
		for t := range x.Rows {
			sum := 0.0
			for tap, weight := range w.Row(c) {
				at := t + tap - state.Rows
				if at < 0 {
					sum += float64(weight) * float64(state.Row(state.Rows + at)[c])
				} else {
					sum += float64(weight) * float64(x.Row(at)[c])
				}
			}
			sum += ofHead(b, c, 0)
			if !linear {
				sum = SiLU(sum)
			}
			dst.Row(t)[c] = float32(sum)
		}
	}
	all := make([][]float32, 0, state.Rows+x.Rows)
	for i := range state.Rows {
		all = append(all, append([]float32(nil), state.Row(i)...))
	}
	for t := range x.Rows {
		all = append(all, x.Row(t))
	}
	for i := range state.Rows {
		copy(state.Row(i), all[len(all)-state.Rows+i])
	}
}

// DeltaNet is the shape of a gated delta net.
type DeltaNet struct {
	KeyHeads, Heads, Head int
	Tiled                 bool // head h takes key head h % KeyHeads, not h / (Heads/KeyHeads)
	ByChannel             bool // each row of a state fades by a factor of its own: alpha is (T, Heads*Head), dt (Heads*Head)
}

// GatedDeltaNet goes through the rows of a sequence. state becomes that after the last.
func GatedDeltaNet(d *DeltaNet, dst Mat /* (T, Heads*Head) */, x Mat /* (T, (2*KeyHeads+Heads)*Head) */, beta, alpha Mat /* (T, Heads) */, a, dt []float32 /* (Heads) */, state Mat /* (Heads*Head, Head) */) {
	n := d.Head
	s, fades := make([]float64, n*n), make([]float64, n)
	for h := range d.Heads {
		from := h / (d.Heads / d.KeyHeads)
		if d.Tiled {
			from = h % d.KeyHeads
		}
		for i := range s {
			s[i] = float64(state.Row(h*n + i/n)[i%n])
		}
		for t := range x.Rows {
			row := x.Row(t)
			q, k := unit(row[from*n:(from+1)*n]), unit(row[(d.KeyHeads+from)*n:(d.KeyHeads+from+1)*n])
			v := row[(2*d.KeyHeads+h)*n:]
			for i := range fades {
				at := h
				if d.ByChannel {
					at = h*n + i
				}
				fades[i] = math.Exp(float64(a[h]) * softplus(float64(alpha.Row(t)[at])+float64(dt[at])))
			}
			write := 1 / (1 + math.Exp(-float64(beta.Row(t)[h])))
			for j := range n {
				read, out := 0.0, 0.0
				for i := range n {
					s[i*n+j] *= fades[i]
					read += s[i*n+j] * k[i]
				}
				for i := range n {
					s[i*n+j] += k[i] * (float64(v[j]) - read) * write
					out += s[i*n+j] * q[i]
				}
				dst.Row(t)[h*n+j] = float32(out / math.Sqrt(float64(n)))
			}
		}
		for i := range s {
			state.Row(h*n + i/n)[i%n] = float32(s[i])
		}
	}
}

// unit is x of length 1.
func unit(x []float32) []float64 {
	sum, y := 1e-6, make([]float64, len(x))
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	for i, v := range x {
		y[i] = float64(v) / math.Sqrt(sum)
	}
	return y
}
