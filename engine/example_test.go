package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"testing"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/vk"
)

const demo = "../cmd/leat/demo/leat-demo-q4_k_m.gguf"

// The examples need a device, and can't skip by themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("LEAT_REQUIRE_DEVICE") != "1" && flag.Lookup("test.skip").Value.String() == "" {
		instance, err := vk.Open(vk.InstanceOptions{})
		if err != nil {
			fmt.Println("examples are skipped:", err)
			flag.Set("test.skip", "^Example")
		} else {
			instance.Close()
		}
	}
	code := m.Run()
	if err := devices.Close(); err != nil {
		fmt.Println("the tests' devices:", err)
		code = 1
	}
	if *writeModels {
		if err := writeTable(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func Example() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	for tok, err := range s.Generate(ctx, m.Encode("Once upon a time", true), engine.Params{MaxTokens: 12}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
	}
	// Output: , there was a little boy named Tim. Tim had a
}

// A budget decides how much of a model streams, and nothing else.
func ExampleOptions_budget() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{DeviceBytes: 4 << 20, ContextLength: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p := m.Plan()
	fmt.Println("streams:", p.StreamedBytes > 0)
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	for tok, err := range s.Generate(ctx, m.Encode("Once upon a time", true), engine.Params{MaxTokens: 12}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
	}
	// Output:
	// streams: true
	// , there was a little boy named Tim. Tim had a
}

func ExampleBudgetError() {
	_, err := engine.Load(context.Background(), demo, engine.Options{DeviceBytes: 1 << 20})
	var budget *engine.BudgetError
	if errors.As(err, &budget) {
		fmt.Printf("%s is too little\n", budget.Tier)
	}
	// Output: VRAM is too little
}

// Greedy decoding by hand: the loop that Generate is.
func ExampleSession_Forward() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{ContextLength: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	ids := m.Encode("Once upon a time", true)
	text := m.Tokenizer().NewStream()
	for range 8 {
		logits, err := s.Forward(ctx, ids) // shape (V)
		if err != nil {
			log.Fatal(err)
		}
		best := 0
		for id := range logits {
			if logits[id] > logits[best] {
				best = id
			}
		}
		fmt.Print(text.Push(token.ID(best)))
		ids = []token.ID{token.ID(best)}
	}
	// Output: , there was a little boy named Tim
}

// A server that gets the whole conversation each time runs only what is new of it.
func ExampleSession_Reuse() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{ContextLength: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	first := m.Encode("The dog ran", true)
	if _, err := s.Forward(ctx, first); err != nil {
		log.Fatal(err)
	}
	second := append(first, m.Encode(" home", false)...)
	rest, err := s.Reuse(second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(second), "tokens,", len(rest), "to run")
	// Output: 4 tokens, 1 to run
}

// A turn of a conversation.
func ExampleChat() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{ContextLength: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	talk := engine.NewChat(s, engine.Params{MaxTokens: 7})
	for piece, err := range talk.Say(ctx, "Tell me a story about a dog and a ball.") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(piece.Text)
	}
	// Output: One day, a small dog named
}

// The model's own template makes the prompt.
func ExampleModel_EncodeChat() {
	ctx := context.Background()
	m, err := engine.Load(ctx, demo, engine.Options{ContextLength: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	messages := []chat.Message{{Role: "user", Content: "Tell me a story about a dog and a ball."}}
	ids, err := m.EncodeChat(ctx, messages, chat.RenderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for tok, err := range s.Generate(ctx, ids, engine.Params{MaxTokens: 7}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(tok.Text)
	}
	// Output: One day, a small dog named
}
