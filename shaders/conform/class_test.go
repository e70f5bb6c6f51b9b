package conform

import "testing"

// TestClasses holds kernels to one promise: a row's bits do not depend on the rows that share its step. One operation: -run '/mul_mat_q4_k$'.
func TestClasses(t *testing.T) {
	s := newRunners(t, 1)
	s.print(t)
	cases, order := byKernel(classCases())
	for _, kernel := range order {
		t.Run(kernel, func(t *testing.T) { s.run(t, cases[kernel]) })
	}
}
