package kernels

import "testing"

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     uint64
		x, y  uint32
		wrong bool
	}{
		{name: "nothing", n: 0},
		{name: "one", n: 1, x: 1, y: 1},
		{name: "full row", n: 65535, x: 65535, y: 1},
		{name: "one more", n: 65536, x: 32768, y: 2},
		{name: "262144 vocabulary rows x 64", n: 262144 * 64, x: 65281, y: 257},
		{name: "largest", n: 65535 * 65535, x: 65535, y: 65535},
		{name: "too many", n: 65535*65535 + 1, wrong: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y, ok := fold(c.n, 65535, 65535)
			if ok == c.wrong || x != c.x || y != c.y {
				t.Errorf("fold(%d) = %d, %d, %v; want %d, %d, %v", c.n, x, y, ok, c.x, c.y, !c.wrong)
			}
			if ok && (uint64(x)*uint64(y) < c.n) {
				t.Errorf("%d x %d misses some of %d", x, y, c.n)
			}
		})
	}
}
