// Package token turns text into token ids of a model's vocabulary, which is the one thing
// a GGUF file's tokenizer.ggml.* keys describe.
//
// A vocabulary is of one of some kinds. "llama" is SentencePiece's BPE: pieces with scores, a
// space written as U+2581, bytes as <0xNN>. "gpt2" is byte-level BPE: a pattern cuts the
// text into words, ranked merges join the bytes of each; "gemma4" and "whitespace" join
// characters. "t5" is SentencePiece's unigram model: the pieces whose scores have the greatest
// sum. "bert" is WordPiece: words of small letters without accents, each cut into the longest
// pieces. Token types guard the text: a control token never comes out of plain text, only where
// the caller allows its spelling.
//
// A [Tokenizer] doesn't change once made; goroutines may share it. A [Stream] is one
// reply's, and one goroutine's.
package token
