package ref

import "math"

// SSMScan goes through the rows of a sequence as Mamba 1 does. bc has a row's B, then its C. state becomes that after the last row.
func SSMScan(dst, x, delta Mat /* (T, Di) */, bc Mat /* (T, 2*N) */, a Mat /* (Di, N) */, d, dt []float32 /* (Di) */, state Mat /* (N, Di) */) {
	n := a.Cols
	h := make([]float64, n)
	for c := range x.Cols {
		for i := range h {
			h[i] = float64(state.Row(i)[c])
		}
		for t := range x.Rows {
			u, step := float64(x.Row(t)[c]), softplus(float64(delta.Row(t)[c])+float64(dt[c]))
			y := u * float64(d[c])
			for i := range h {
				h[i] = h[i]*math.Exp(step*float64(a.Row(c)[i])) + step*u*float64(bc.Row(t)[i])
				y += h[i] * float64(bc.Row(t)[n+i])
			}
			dst.Row(t)[c] = float32(y)
		}
		for i, v := range h {
			state.Row(i)[c] = float32(v)
		}
	}
}

// SSD is the shape of a layer of Mamba 2.
type SSD struct {
	Heads, Head, Groups, State int
	DeltaMin                   float32 // the least time step
}

// SSDScan goes through the rows of a sequence as Mamba 2 does. A row of x has the heads' values, each group's B, each group's C. state becomes that after the
// last row.
func SSDScan(m *SSD, dst Mat /* (T, Heads*Head) */, x Mat /* (T, Heads*Head+2*Groups*State) */, delta Mat /* (T, Heads) */, a, d, dt []float32 /* (Heads) */, state Mat /* (Heads*State, Head) */) {
	n := m.State
	s := make([]float64, n*m.Head)
	for h := range m.Heads {
		b := m.Heads*m.Head + h/(m.Heads/m.Groups)*n
		c := b + m.Groups*n
		for i := range s {
			s[i] = float64(state.Row(h*n + i/m.Head)[i%m.Head])
		}
		for t := range x.Rows {
			row := x.Row(t)
			step := max(softplus(float64(delta.Row(t)[h])+float64(dt[h])), float64(m.DeltaMin))
			fade := math.Exp(step * float64(a[h]))
			for p := range m.Head {
				v := float64(row[h*m.Head+p])
				y := v * float64(d[h])
				for i := range n {
					at := i*m.Head + p
					s[at] = s[at]*fade + step*v*float64(row[b+i])
					y += s[at] * float64(row[c+i])
				}
				dst.Row(t)[h*m.Head+p] = float32(y)
			}
		}
		for i, v := range s {
			state.Row(h*n + i/m.Head)[i%m.Head] = float32(v)
		}
	}
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
