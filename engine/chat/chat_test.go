package chat

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/await"
	"leat/tools/testdata"
)

const chatML = `{% for m in messages %}{{ '<|im_start|>' + m['role'] + '
' + m['content'] + '<|im_end|>' + '
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}`

func TestRender(t *testing.T) {
	day := func() time.Time { return time.Date(2025, 7, 10, 0, 0, 0, 0, time.UTC) }
	tool := json.RawMessage(`{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0, "a": [2]}}}`)
	for _, c := range []struct {
		name, source, want, fails string
		o                         RenderOptions
	}{
		{name: "ChatML", source: chatML, want: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
		{name: "no prompt", source: chatML, o: RenderOptions{NoGenerationPrompt: true}, want: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"},
		{name: "special tokens", source: `{{ bos_token }}{{ messages[1].content }}{{ eos_token }}`, want: "<s>Hi</s>"},
		{name: "argument", source: `{{ 'no' if enable_thinking is defined and enable_thinking is false }}`, o: RenderOptions{Args: map[string]any{"enable_thinking": false}}, want: "no"},
		{name: "argument not given", source: `{{ enable_thinking is defined }}`, want: "False"},
		{name: "argument over ours", source: `{{ bos_token }}`, o: RenderOptions{Args: map[string]any{"bos_token": "B"}}, want: "B"},
		{name: "whole number", source: `{{ n }}{{ x }}`, o: RenderOptions{Args: map[string]any{"n": 5.0, "x": []any{1, 0.5, "a", nil}}}, want: "5[1, 0.5, 'a', None]"},
		{name: "tools keep their order", source: `{{ tools | tojson }}`, o: RenderOptions{Tools: []any{tool}}, want: `[{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0, "a": [2]}}}]`},
		{name: "tools of Go", source: `{{ tools | tojson }}`, o: RenderOptions{Tools: []any{map[string]any{"b": 1, "a": struct{ Z, Y int }{1, 2}}}}, want: `[{"a": {"Z": 1, "Y": 2}, "b": 1}]`},
		{name: "no tools", source: `{{ tools is defined }}`, want: "False"},
		{name: "date", source: `{{ strftime_now('%d %b %Y') }}`, o: RenderOptions{Now: day}, want: "10 Jul 2025"},
		{name: "guard", source: `{{ messages[0].role }} {{ messages[0].content }} {{ tools }} {{ x }} {{ bos_token }}`, o: RenderOptions{Guard: strings.ToUpper, Tools: []any{map[string]any{"key": "v", "<k>": 1}}, Args: map[string]any{"x": "y"}}, want: "system BE BRIEF. [{'<K>': 1, 'key': 'V'}] Y <s>"},
		{name: "refusal", source: `{{ raise_exception('no system prompt') }}`, fails: "render chat template: line 1: the template refuses: no system prompt"},
		{name: "unending", source: `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`, fails: "asks for too much"},
		{name: "1 GB", source: `{{ ('x' * 10**9) | length }}`, fails: "asks for too much"},
		{name: "malformed", source: `{% for m in %}`, fails: "compile chat template: line 1: "},
		{name: "no JSON", source: ``, o: RenderOptions{Tools: []any{make(chan int)}}, fails: "tools: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := New(c.source, Vocabulary{BOS: "<s>", EOS: "</s>"})
			got := ""
			if err == nil {
				got, err = tmpl.Render(await.Context(t), []Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hi"}}, c.o)
			}
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %q, error %v; wanted an error with %q", got, err, c.fails)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, error %v; wanted %q", got, err, c.want)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	tmpl, err := New(`{{ messages | tojson }}`, Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Render(t.Context(), []Message{
		{Role: "assistant", Content: "c", Thinking: "t", ToolCalls: []ToolCall{{ID: "1", Name: "f", Arguments: json.RawMessage(`{"z": 1, "a": "<"}`)}, {Name: "g"}}},
		{Role: "tool", Content: "r", ToolCallID: "1", Name: "f"},
	}, RenderOptions{})
	want := `[{"content": "c", "reasoning": "t", "reasoning_content": "t", "role": "assistant", "thinking": "t", "tool_calls": [` +
		`{"function": {"arguments": {"z": 1, "a": "<"}, "name": "f"}, "id": "1", "type": "function"}, ` +
		`{"function": {"arguments": {}, "name": "g"}, "type": "function"}]}, ` +
		`{"content": "r", "name": "f", "role": "tool", "tool_call_id": "1"}]`
	if err != nil || got != want {
		t.Errorf("got %s, %v\nwanted %s", got, err, want)
	}
}

func TestErrorTypes(t *testing.T) {
	for source, check := range map[string]func(error) bool{
		`{{ raise_exception('no') }}`: func(err error) bool { var r *RefusedError; return errors.As(err, &r) && r.Text == "no" },
		`{{ 'x' * 10**9 }}`:           func(err error) bool { return errors.Is(err, ErrLimit) },
	} {
		tmpl, err := New(source, Vocabulary{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Render(t.Context(), nil, RenderOptions{}); !check(err) {
			t.Errorf("%s: got %v (%T)", source, err, err)
		}
	}
}

// Templates that refuse one plain message, as they do in Jinja2.
var refuses = map[string]string{
	"fireworks-ai-llama-3-firefunction-v2.jinja": "it wants an argument, functions",
}

// TestVendors renders one message with each template that we have; all others must.
func TestVendors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t), "vendor", "templates", "*.jinja"))
	if err != nil || len(files) < 70 {
		t.Fatalf("found %d templates, wanted 70 (%v)", len(files), err)
	}
	rendered := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := New(string(source), Vocabulary{BOS: "<s>", EOS: "</s>"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), []Message{{Role: "user", Content: "Why is it so?"}}, RenderOptions{})
			if why, ok := refuses[filepath.Base(file)]; ok {
				if err == nil {
					t.Errorf("renders now: strike it off refuses")
				}
				t.Skipf("%v: %s", err, why)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, "Why is it so?") {
				t.Errorf("the message is not in %q", got)
			}
			tags := tmpl.tags.open
			if tmpl.tags.parts != nil {
				tags = "by parts"
			}
			t.Logf("thinking %s, known %v; ends %.60q", tags, tmpl.tags.known, got[max(0, len(got)-60):])
			rendered++
		})
	}
	t.Logf("%d of %d render", rendered, len(files))
}

// A template that takes too long asks for too much, unless it is the caller's time that is over.
func TestRenderTakesTooLong(t *testing.T) {
	defer func(d time.Duration) { maxTime = d }(maxTime)
	maxTime = 1
	tmpl, err := New(`{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`, Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(t.Context(), nil, RenderOptions{}); !errors.Is(err, ErrLimit) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, wanted ErrLimit", err)
	}
	if _, err := tmpl.Render(over{t.Context()}, nil, RenderOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, wanted the end of the caller's time", err)
	}
}

// over is a context whose time was over long ago.
type over struct{ context.Context }

func (over) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }
func (over) Err() error                  { return context.DeadlineExceeded }
func (over) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
