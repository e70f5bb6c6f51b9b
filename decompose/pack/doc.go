// Package pack is what a model is on disk: units in execution order, each a list of reads.
//
// A [Unit] is the smallest thing streamed: a layer, or one expert of one layer. [Open] shows a
// decomposed model (a folder with manifest.json, docs/pack-format.md) and a GGUF as the same
// units: same tensors, same offsets in memory, other [Extent]s on disk. So everything above reads
// either without asking which it is.
//
// Offsets inside a unit (UnitOff) depend on the tensors' names, types and shapes alone: execution
// order, each on the next multiple of [TensorAlign]. A unit filled from a pack and the same unit
// filled from the GGUF it came from are equal byte for byte.
//
// Bytes from a file are hostile: every size is checked against the real files, every name against
// the names this format knows, before anything is allocated for it.
package pack
