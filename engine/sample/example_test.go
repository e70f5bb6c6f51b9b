package sample_test

import (
	"fmt"
	"math"

	"leat/engine/sample"
)

func ExampleSampler() {
	p := sample.Params{Temperature: 0.7, TopK: 20, MinP: 0.05, PresencePenalty: 3, Seed: 1}
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	s := sample.New(p)
	s.Prime(2) // the prompt: the penalty makes 2 less likely from the beginning
	for range 3 {
		id, err := s.Next([]float32{5, -4, 6, -4})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id)
		s.Accept(id)
	}
	// Output:
	// 0
	// 2
	// 2
}

// even lets even ids through.
type even struct{}

func (even) Mask(logits []float32) {
	for i := 1; i < len(logits); i += 2 {
		logits[i] = float32(math.Inf(-1))
	}
}

func (even) Accept(int32) {}

func ExampleMask() {
	s := sample.New(sample.Params{})
	s.SetMask(even{})
	logits := []float32{1, 9, 2}
	id, _ := s.Next(logits)
	of, top := sample.Logprobs(logits, id, 1) // what the model thought of it
	fmt.Printf("token %d, log probability %.2f; the likeliest was %d\n", id, of, top[0].ID)
	// Output: token 2, log probability -7.00; the likeliest was 1
}
