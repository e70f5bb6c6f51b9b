package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant"
	Content string
}

// Template is a model's chat template. Its methods may be called by several goroutines.
type Template struct {
	t        *exec.Template
	bos, eos string
}

// Limits on what a template, which comes with the model and may be hostile, can cost.
const (
	maxSource = 1 << 20
	maxOutput = 16 << 20
)

const name = "chat_template"

// New compiles a template; bos and eos are the vocabulary's texts of these tokens.
func New(source, bos, eos string) (*Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("compile chat template: found %d bytes, wanted at most %d", len(source), maxSource)
	}
	// As the templates' authors test them: Hugging Face's settings. The loader holds
	// this one text, so no template can read files.
	c := config.New()
	c.TrimBlocks, c.LeftStripBlocks = true, true
	only, err := loaders.NewMemoryLoader(map[string]string{"/" + name: source})
	if err != nil {
		return nil, fmt.Errorf("compile chat template: %w", err)
	}
	env := &exec.Environment{
		Context: exec.EmptyContext().Update(builtins.GlobalFunctions).Update(builtins.GlobalVariables),
		Filters: builtins.Filters, Tests: builtins.Tests, ControlStructures: builtins.ControlStructures, Methods: builtins.Methods,
	}
	t, err := exec.NewTemplate("/"+name, c, only, env)
	if err != nil {
		return nil, fmt.Errorf("compile chat template: %w", err)
	}
	return &Template{t: t, bos: bos, eos: eos}, nil
}

// Render returns the conversation as text, ending where the assistant's next turn
// begins. Canceling ctx ends a template that runs on.
func (t *Template) Render(ctx context.Context, messages []Message) (text string, err error) {
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = map[string]any{"role": m.Role, "content": m.Content}
	}
	data := exec.NewContext(map[string]any{
		"messages": list, "add_generation_prompt": true, "bos_token": t.bos, "eos_token": t.eos,
		"raise_exception": func(text string) (string, error) { return "", fmt.Errorf("the template refuses: %s", text) },
	})
	w := &limitedWriter{ctx: ctx}
	defer func() { // the interpreter panics on some faults of a template
		if p := recover(); p != nil {
			err = fmt.Errorf("render chat template: %v", p)
		}
	}()
	if err := t.t.Execute(w, data); err != nil {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return w.b.String(), nil
}

// limitedWriter collects the output and stops a template that never ends.
type limitedWriter struct {
	ctx context.Context
	b   strings.Builder
}

var errTooLong = errors.New("its output is longer than 16 MiB")

func (w *limitedWriter) Write(p []byte) (int, error) { return w.WriteString(string(p)) }

func (w *limitedWriter) WriteString(s string) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if w.b.Len()+len(s) > maxOutput {
		return 0, errTooLong
	}
	return w.b.WriteString(s)
}

var _ io.StringWriter = (*limitedWriter)(nil)
