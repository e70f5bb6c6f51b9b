package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"leat/internal/kernels"
	"leat/vk/vktest"
)

// doctor --kernels says for each operation that has several variants which one prompts and decoding run by, and why better ones don't.
func TestExplainKernels(t *testing.T) {
	dev := vktest.Open(t)
	stdout, stderr, code := leat(t, "doctor", "--kernels", "demo", "--json")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	var list []choiceReport
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	find := func(op, class string) *choiceReport {
		i := slices.IndexFunc(list, func(c choiceReport) bool { return strings.HasPrefix(c.Op, op) && c.Class == class })
		if i < 0 {
			t.Fatalf("%s of %s is missing in %s", op, class, stdout)
		}
		return &list[i]
	}
	for _, class := range []string{"prompt", "decode"} {
		for _, op := range []string{"attn_norm", "attn_q, attn_k, attn_v", "attn_output", "attention", "ffn_norm", "ffn_gate, ffn_up", "ffn_down"} {
			if c := find(op, class); c.Layers == 0 || c.Variant == "" && len(c.Passed) == 0 {
				t.Errorf("%s of %s: %+v", op, class, c)
			}
		}
	}
	attn := find("attention", "decode")
	want := "flash_attn_fp32"
	if kernels.HasFewRowKernels(dev.Physical, dev.Features) {
		want = "flash_attn_joined"
	}
	if attn.Variant != want || attn.Passed[0].Variant != "flash_attn_cm" || attn.Passed[0].Why == "" {
		t.Errorf("attention of a row to decode: %+v, want %s, and why not flash_attn_cm", attn, want)
	}
	if c := find("argmax", "decode"); c.Layers != 0 || c.Variant != "argmax_joined" {
		t.Errorf("after the layers: %+v", c)
	}
	text, _, code := leat(t, "doctor", "--kernels", "demo")
	if code != exitOK || !strings.Contains(text, "not flash_attn_cm:") || !strings.Contains(text, want) {
		t.Errorf("exit %d: %s", code, text)
	}
	if _, stderr, code := leat(t, "doctor", "--kernels"); code != exitUsage || !strings.Contains(stderr, "MODEL is missing") {
		t.Errorf("without a model: exit %d, %q", code, stderr)
	}
}
