// Command leat runs language models that are larger than the GPU's memory.
//
// One file per subcommand; each adds itself to commands in an init function. Stdout is
// the answer, stderr is the talk.
package main
