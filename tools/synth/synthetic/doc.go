// Package synthetic writes GGUF models of real shapes whose weights are random.
//
// They cost no download, any size can be had, and they behave like a model in all but
// sense: blocks are valid, activations stay finite through any number of layers, text
// encodes byte by byte, and each layer of a mixture of experts routes by itself. The
// same options and seed write the same bytes.
package synthetic
