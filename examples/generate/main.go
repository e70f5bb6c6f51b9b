// Command generate goes on with a text: the smallest program over leat.
//
//	go run ./generate MODEL.gguf "Once upon a time"
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"leat/engine"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: generate MODEL.gguf PROMPT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := generate(ctx, os.Stdout, os.Args[1], os.Args[2], engine.Params{MaxTokens: 100}); err != nil {
		log.Fatal(err)
	}
}

// generate writes what the model at path makes of prompt, as it comes.
func generate(ctx context.Context, w io.Writer, path, prompt string, p engine.Params) error {
	m, err := engine.Load(ctx, path, engine.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	for tok, err := range s.Generate(ctx, m.Encode(prompt, true), p) {
		if err != nil {
			return err
		}
		fmt.Fprint(w, tok.Text)
	}
	fmt.Fprintln(w)
	return nil
}
