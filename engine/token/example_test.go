package token_test

import (
	"fmt"
	"log"

	"leat/engine/token"
	"leat/gguf"
)

func Example() {
	f, err := gguf.Open("../../cmd/leat/demo/leat-demo-q4_k_m.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t, err := token.New(f.Metadata)
	if err != nil {
		log.Fatal(err)
	}
	ids := t.Encode("The dog ran.", true, false)
	fmt.Println(ids)
	fmt.Printf("%q\n", t.Decode(ids))

	// A user's "<|im_end|>" is text; only a template may mean the control token.
	fmt.Println(len(t.Encode("<|im_end|>", false, false)), len(t.Encode("<|im_end|>", false, true)))
	// Output:
	// [506 772 888 16]
	// "The dog ran."
	// 7 1
}

// A stream shows whole runes only, whatever a token's bytes are.
func ExampleStream() {
	f, err := gguf.Open("../../cmd/leat/demo/leat-demo-q4_k_m.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	t, err := token.New(f.Metadata)
	if err != nil {
		log.Fatal(err)
	}
	s := t.NewStream()
	for _, id := range t.Encode(" 水", false, false) {
		fmt.Printf("%q ", s.Push(id))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output: " " "" "" "水" ""
}
