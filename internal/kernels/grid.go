package kernels

// fold returns a grid of x times y workgroups, at least n in all, so that neither side exceeds its limit. Kernels compute a workgroup's number from both;
// the few workgroups past n do nothing. ok is false if n does not fit.
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
