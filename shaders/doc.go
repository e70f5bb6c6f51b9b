// Package shaders is the table of compute kernels: each row names its SPIR-V, its
// argument struct and its specialisation constants.
//
// A kernel is a function of pointers: push constants hold device addresses and
// sizes, there are no descriptors. The sources are the .comp files (entry points)
// and .glsl files (shared code) of this folder; spv/ holds what tools/genspv makes
// of them. docs/kernels.md says what every kernel promises.
package shaders

//go:generate go run leat/tools/genspv
