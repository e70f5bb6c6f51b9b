// Package plan decides where a model's bytes live: which units stay in VRAM, which
// are streamed from host memory or disk, how much context fits beside them.
//
// It is pure: sizes and budgets in, a verdict per unit out. It knows nothing of time: how
// fast a plan runs is for package predict to say. A plan is
// exact: [Plan.DeviceBytes] is the sum of the allocations that packages weights,
// kv and step then make.
//
// Unstable: importable by our own commands and tools, no promise to others.
package plan
