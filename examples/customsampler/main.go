// Command customsampler writes without the letter e, as Georges Perec did: its own
// sampler over the logits that Session.Forward returns.
//
//	go run ./customsampler MODEL.gguf "Tim had a cat" 60
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"

	"leat/engine"
	"leat/engine/token"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: customsampler MODEL.gguf PROMPT TOKENS")
	}
	n, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, os.Stdout, os.Args[1], os.Args[2], n); err != nil {
		log.Fatal(err)
	}
}

// write goes on with prompt for at most n tokens that have no e in them.
func write(ctx context.Context, w io.Writer, path, prompt string, n int) error {
	m, err := engine.Load(ctx, path, engine.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Tokenizer() == nil {
		return m.TokenizerError()
	}
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	allowed := withoutE(m.Tokenizer())
	text := m.Tokenizer().NewStream() // whole runes, also where a token is part of one
	ids := m.Encode(prompt, true)
	for range n {
		logits, err := s.Forward(ctx, ids)
		if err != nil {
			return err
		}
		id := best(logits, allowed)
		if m.Tokenizer().IsEOG(id) {
			break
		}
		fmt.Fprint(w, text.Push(id))
		ids = []token.ID{id}
	}
	fmt.Fprintln(w, text.Flush())
	return nil
}

// withoutE tells of each token, shape (V), whether its text has no e.
func withoutE(t *token.Tokenizer) []bool {
	allowed := make([]bool, t.Size())
	for id := range allowed {
		allowed[id] = !bytes.ContainsAny(t.Piece(token.ID(id)), "eE")
	}
	return allowed
}

// best is the allowed token with the largest logit; both shapes (V).
func best(logits []float32, allowed []bool) token.ID {
	found := -1
	for id, logit := range logits {
		if allowed[id] && (found < 0 || logit > logits[found]) {
			found = id
		}
	}
	return token.ID(found)
}
