// Package decompose turns a GGUF into a pack.
//
// [Run] writes OUTDIR.partial, file by file: each as NAME.tmp, synced, renamed, then noted in the
// folder's journal. So a kill at any byte costs at most the file in hand: the next Run takes
// up what the journal holds, if source and layout are still the same. The manifest comes last, then
// the folder gets its own name. A pack under its own name is whole.
package decompose
