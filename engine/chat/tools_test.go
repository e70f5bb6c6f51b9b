package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/testdata"
)

// What templates leave out of a conversation with tools, as they do in Jinja2: t the tools, c the call, r its result.
var leavesOut = map[string]string{
	"CohereForAI-c4ai-command-r-plus-tool_use.jinja": "", // it renders, as all others do, when each part has a description
	"HuggingFaceTB-SmolLM3-3B.jinja":                 "tc",
	"LFM2-8B-A1B.jinja":                              "c",
	"LFM2.5-Instruct.jinja":                          "c",
	"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": "tc",
	"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja": "t",
	"deepseek-ai-DeepSeek-V3.1.jinja":                "t",
	"fireworks-ai-llama-3-firefunction-v2.jinja":     "all",
	"google-gemma-2-2b-it.jinja":                     "all",
	"ibm-granite-granite-3.3-2B-Instruct.jinja":      "c",
	"llama-cpp-rwkv-world.jinja":                     "tcr",
	"microsoft-Phi-3.5-mini-instruct.jinja":          "tcr",
}

// TestToolsOfVendors renders tools offered, a call and its result with each published template.
func TestToolsOfVendors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t), "vendor", "templates", "*.jinja"))
	if err != nil || len(files) < 70 {
		t.Fatalf("found %d templates, wanted 70 (%v)", len(files), err)
	}
	tool := json.RawMessage(`{"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": {"type": "object",
		"properties": {"city": {"type": "string", "description": "Where it is"}}, "required": ["city"]}}}`)
	conversation := []Message{
		{Role: "user", Content: "How is it?"},
		{Role: "assistant", ToolCalls: []ToolCall{{ID: "call12345", Name: "weather", Arguments: json.RawMessage(`{"city": "Ulm on the Danube"}`)}}},
		{Role: "tool", Content: "Sunny, 21.5", ToolCallID: "call12345", Name: "weather"},
	}
	now := func() time.Time { return time.Date(2025, 7, 10, 0, 0, 0, 0, time.UTC) }
	whole := 0
	for _, file := range files {
		name := filepath.Base(file)
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := New(string(source), Vocabulary{BOS: "<s>", EOS: "</s>"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Render(t.Context(), conversation, RenderOptions{Tools: []any{tool}, Now: now})
		out := ""
		if err != nil {
			out = "all"
			t.Logf("%s: %v", name, err)
		} else {
			for _, part := range []struct{ letter, text string }{{"t", "Where it is"}, {"c", "Ulm on the Danube"}, {"r", "21.5"}} {
				if !strings.Contains(got, part.text) {
					out += part.letter
				}
			}
		}
		if out != leavesOut[name] {
			t.Errorf("%s leaves out %q, wanted %q: %q", name, out, leavesOut[name], got)
		}
		if out == "" {
			whole++
		}
	}
	t.Logf("%d of %d templates render tools, a call and its result", whole, len(files))
}

// A message with calls of tools, content and thinking is refused by gpt-oss's template: both go where the thinking goes.
func TestCallsWithContent(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(testdata.Dir(t), "vendor", "templates", "openai-gpt-oss-120b.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := New(string(source), Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Render(t.Context(), []Message{
		{Role: "user", Content: "Weather?"},
		{Role: "assistant", Content: "I look.", Thinking: "Hm.", ToolCalls: []ToolCall{{Name: "f"}}},
		{Role: "tool", Content: "Sun."},
	}, RenderOptions{})
	if want := "<|channel|>analysis<|message|>Hm.\n\nI look.<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}<|call|>"; err != nil || !strings.Contains(got, want) {
		t.Errorf("got %q, %v; wanted %q in it", got, err, want)
	}
}
