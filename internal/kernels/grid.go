package kernels

// fold spreads n workgroups over x and y so that neither exceeds its limit; kernels number groups y*width + x and
// the few past n return at once. ok is false when n does not fit.
func fold(n uint64, limitX, limitY uint32) (x, y uint32, ok bool) {
	if n == 0 {
		return 0, 0, true
	}
	rows := (n + uint64(limitX) - 1) / uint64(limitX)
	if rows > uint64(limitY) {
		return 0, 0, false
	}
	return uint32((n + rows - 1) / rows), uint32(rows), true
}
