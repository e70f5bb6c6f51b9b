package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"leat/engine/chat/jinja"
)

// Message is one turn of a conversation.
type Message struct {
	Role     string // "system", "user", "assistant", "tool"
	Content  string
	Thinking string // what an assistant thought before its answer; most templates leave it out

	ToolCalls  []ToolCall // of an assistant
	ToolCallID string     // of a tool: the call that it answers
	Name       string     // of a tool, or a person among several
}

// ToolCall is an assistant's wish to have a tool called.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // an object; empty: {}
}

// RenderOptions say how a conversation is rendered. The zero value ends the text where
// the assistant's next turn begins.
type RenderOptions struct {
	NoGenerationPrompt bool
	// Tools are JSON schemas of what may be called: json.RawMessage keeps the order of
	// keys, which a map[string]any has not.
	Tools []any
	// Args are arguments that the template itself defines, such as enable_thinking. They
	// override what we pass.
	Args map[string]any
	// Now is the moment for strftime_now; nil: time.Now. It should stand still within a conversation: else a time in the system prompt
	// makes each turn's text another from its beginning on, and nothing of the last turn can be used again.
	Now func() time.Time

	// Guard goes over every string that is not the template's own; nil: none. Package
	// engine sees to it that none of them spells a control token.
	Guard func(string) string
}

// Template is a model's chat template. Its methods may be called by several goroutines.
type Template struct {
	t        *jinja.Template
	bos, eos string
	tags     tags

	probe         sync.Once
	textArguments bool // it wants the arguments of a call as JSON text; found by probe
}

// maxTime is what a rendering may take if its context sets no deadline. The steps and
// bytes that package jinja counts end it long before, on any machine but the slowest.
// A test makes it short.
var maxTime = 5 * time.Second

// Vocabulary is what a template needs to know of a model's tokens.
type Vocabulary struct {
	BOS, EOS  string                     // their spellings; "" for none
	IsControl func(spelling string) bool // whether a control token is spelled so; nil: none is
}

// New compiles a template.
func New(source string, v Vocabulary) (*Template, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("compile chat template: %w", err)
	}
	return &Template{t: t, bos: v.BOS, eos: v.EOS, tags: findTags(source).forVocabulary(v.IsControl)}, nil
}

// Render returns the conversation as text. A template that asks for too much time,
// memory or text ends with an error that wraps [ErrLimit], one that refuses the
// conversation with a [*RefusedError].
func (t *Template) Render(ctx context.Context, messages []Message, o RenderOptions) (string, error) {
	text, err := t.render(ctx, messages, o)
	if err != nil {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return text, nil
}

// ErrLimit is wrapped by the error about a template that asks for too much.
var ErrLimit = jinja.ErrLimit

// RefusedError is a template's own complaint about a conversation.
type RefusedError = jinja.Refusal

func (t *Template) render(ctx context.Context, messages []Message, o RenderOptions) (string, error) {
	_, own := ctx.Deadline()
	if !own {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxTime)
		defer cancel()
	}
	if slices.ContainsFunc(messages, func(m Message) bool { return len(m.ToolCalls) > 0 }) {
		t.probe.Do(func() { t.textArguments = t.wantsText() })
	}
	text, err := t.renderAs(ctx, messages, o, t.textArguments)
	if !own && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: it takes more than %v", ErrLimit, maxTime)
	}
	return text, err
}

// wantsText tells whether a template shows the arguments of a call when it gets them as text, and not when it gets an object.
func (t *Template) wantsText() bool {
	ctx, cancel := context.WithTimeout(context.Background(), maxTime) // not the caller's: what is found is kept
	defer cancel()
	const sign = "argument-shown"
	conversation := []Message{
		{Role: "user", Content: "?"},
		{Role: "assistant", ToolCalls: []ToolCall{{ID: "call00001", Name: "f", Arguments: json.RawMessage(`{"x": "` + sign + `"}`)}}},
		{Role: "tool", Content: "!", ToolCallID: "call00001", Name: "f"},
	}
	tool := json.RawMessage(`{"type": "function", "function": {"name": "f", "description": "F", "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "X"}}, "required": ["x"]}}}`)
	shown := func(text bool) bool {
		s, err := t.renderAs(ctx, conversation, RenderOptions{Tools: []any{tool}}, text)
		return err == nil && strings.Contains(s, sign)
	}
	return !shown(false) && shown(true)
}

func (t *Template) renderAs(ctx context.Context, messages []Message, o RenderOptions, textArguments bool) (string, error) {
	data, err := t.data(messages, o, textArguments)
	if err != nil {
		return "", err
	}
	return t.t.Render(ctx, data, jinja.Options{Now: o.Now})
}

// data makes fresh values for each rendering, as a template may change them.
func (t *Template) data(messages []Message, o RenderOptions, textArguments bool) (map[string]jinja.Value, error) {
	data := map[string]jinja.Value{"bos_token": t.bos, "eos_token": t.eos, "add_generation_prompt": !o.NoGenerationPrompt}
	list := make([]any, len(messages))
	for i := range messages {
		list[i] = messages[i].fields(t.tags.oneOf, textArguments)
	}
	var err error
	if data["messages"], err = jinja.FromGo(list, o.Guard); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if len(o.Tools) > 0 {
		if data["tools"], err = jinja.FromGo(o.Tools, o.Guard); err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
	}
	for name, v := range o.Args {
		if data[name], err = jinja.FromGo(v, o.Guard); err != nil {
			return nil, fmt.Errorf("argument %q: %w", name, err)
		}
	}
	return data, nil
}

// fields are a message as templates know it: OpenAI's names, and for thinking the three
// that are in use. oneOf: beside calls of tools there may be content or thinking, not both.
func (m *Message) fields(oneOf, textArguments bool) map[string]any {
	content, thinking := m.Content, m.Thinking
	if oneOf && len(m.ToolCalls) > 0 && content != "" && thinking != "" {
		content, thinking = "", thinking+"\n\n"+content
	}
	f := map[string]any{"role": m.Role, "content": content}
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool": // templates compare with them
		f["role"] = jinja.Plain(m.Role)
	}
	if thinking != "" {
		f["reasoning_content"], f["reasoning"], f["thinking"] = thinking, thinking, thinking
	}
	if m.Name != "" {
		f["name"] = m.Name
	}
	if m.ToolCallID != "" {
		f["tool_call_id"] = m.ToolCallID
	}
	if len(m.ToolCalls) == 0 {
		return f
	}
	calls := make([]any, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		arguments := c.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		function := map[string]any{"name": c.Name, "arguments": arguments}
		if textArguments {
			function["arguments"] = string(arguments)
		}
		call := map[string]any{"type": jinja.Plain("function"), "function": function}
		if c.ID != "" {
			call["id"] = c.ID
		}
		calls[i] = call
	}
	f["tool_calls"] = calls
	return f
}
