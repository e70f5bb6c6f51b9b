// Package arch says what a model is: its hyperparameters, read from the file's
// metadata, and each of its layers as a list of operations bound to tensor names.
//
// It uses no device. Of the file it reads the metadata, the shapes and types of
// tensors, and the values of a few small tensors that the host computes with: the
// frequency factors of rope and the dense layers after an encoder.
//
// The way through the package: [Read] makes a [Hyper] and checks the file against
// it; families.go names for each architecture the function that reads its keys
// and the function that adds the operations of a layer; [Hyper.Input],
// [Hyper.Layer], [Hyper.Output] and [Hyper.LogitOps] list the operations of a
// forward pass in order; [Fuse] replaces some of them by fused ones.
//
// A step is one forward pass, a row is one of its tokens, a sequence is a text
// that rows belong to. Shapes are written outermost first, with these letters:
//
//	N          rows of a step; after the layers, only the rows whose logits are wanted
//	D L V      width of the residual stream, layers, vocabulary
//	F          inner width of the FFN
//	H Hkv      query heads, key/value heads
//	Dk Dv Dr   size of a head's key, of its value, and of the part that rope rotates
//	Rq R       latent attention: size of the latent of queries, and of keys and values
//	E K        experts of a layer, experts that a row uses
//	Fe Fs Z    inner width of an expert and of the shared expert, size of a latent that experts read
//	Hk Hn Dn   gated delta nets: key heads, value heads, size of a head
//	Di Ns G Hm Mamba: inner width, size of a state, groups, heads
//	Rm         Mamba 1: size of what time steps are computed from
//	Dp         size of a layer's own input
//
// Unstable: importable by our own commands and tools, no promise to others.
package arch
