package main

import (
	"strings"
	"testing"

	"leat/vk/vktest"
)

func TestWrite(t *testing.T) {
	vktest.Open(t) // skips where there is none
	var out strings.Builder
	if err := write(t.Context(), &out, "../../cmd/leat/demo/leat-demo-q4_k_m.gguf", "Tim had a cat", 12); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if strings.ContainsAny(out.String(), "eE") || strings.TrimSpace(out.String()) == "" {
		t.Errorf("found %q", out.String())
	}
}
