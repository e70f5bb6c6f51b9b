// Package conform is the suite of all kernels: which cases of package selftest show that a kernel computes right at whatever shape a model may
// ask for, and that a row's bits don't depend on the rows beside it.
//
// Its tests run the suite, on devices with and without each feature, and benchmarks measure kernels one by one. The program does not link it.
package conform
