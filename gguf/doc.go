// Package gguf reads and writes GGUF model files.
//
// [Open] reads the header of a file, or of all shards of a sharded one: the
// metadata, and where each tensor's bytes lie. Tensor data stays on disk until
// [File.ReadAt] asks for it. [Write] makes such a file, version 2 or 3, always
// little-endian.
//
// A file is hostile until it has been checked. Every length is held against the
// bytes that are left before memory is taken for it, sums and products are checked,
// and a tensor must lie inside its file, on its alignment, apart from all others.
// Whatever breaks these rules comes back as a [*FormatError].
package gguf
