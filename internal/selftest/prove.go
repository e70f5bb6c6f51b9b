package selftest

import (
	"context"
	"errors"
	"fmt"

	"leat/internal/kernels"
	"leat/vk"
)

const (
	proveBytes = 12 << 20 // memory of the runner; the largest case needs 6 MiB
	proveSeed  = 1        // always the same, so that a pipeline that has passed passes again
)

// Prove tests a pipeline with a few small cases that reach all of its code, and compares the results with the reference. It is for
// [kernels.Options.Test]. k gives the pipeline without testing it. The error is a [*MismatchError] if the pipeline computes wrong.
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

// idle waits until the device has ended all work. A run that failed may still be running, and its memory is freed next. The error is that of a lost device.
func idle(dev *vk.Device) error {
	if err := dev.WaitIdle(); errors.Is(err, vk.ErrDeviceLost) {
		return err
	}
	return nil
}

// proofs returns the cases that a pipeline must pass before it is used. They run no other pipeline of its row. nil: the row has none.
func proofs(v *kernels.Variant) []Case {
	if e := testsOf(v.Row); e.proofs != nil {
		return e.proofs(v)
	}
	return nil
}
