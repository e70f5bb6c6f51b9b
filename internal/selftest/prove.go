package selftest

import (
	"context"
	"errors"
	"fmt"

	"leat/internal/kernels"
	"leat/vk"
)

const (
	proveBytes = 12 << 20 // of memory; the largest case needs 6 MiB
	proveSeed  = 1        // what passed once passes always
)

// Prove runs a pipeline on a few small cases that reach all of its code and compares with the reference: it is a
// [kernels.Options.Test]. k has the pipeline, untested. The error is a [*MismatchError] where it computes wrong.
func Prove(k *kernels.Kernels, v kernels.Variant) error {
	cases := proofs(&v)
	if len(cases) == 0 {
		return fmt.Errorf("prove %s: there is no case for it", v.Row.Name)
	}
	r, err := newRunner(k.Device(), k, proveSeed, proveBytes)
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range cases {
		if _, err := r.Run(context.Background(), &cases[i]); err != nil {
			return errors.Join(err, idle(k.Device()))
		}
	}
	return nil
}

// idle waits for what may still run where waiting for it failed: its memory is freed next.
func idle(dev *vk.Device) error {
	if err := dev.WaitIdle(); errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	return nil
}

// proofs are cases that run no pipeline of v's row but v.
func proofs(v *kernels.Variant) []Case {
	if e := testsOf(v.Row); e.proofs != nil {
		return e.proofs(v)
	}
	return nil
}
