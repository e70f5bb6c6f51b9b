package engine

import (
	"context"
	"fmt"
	"strings"

	"leat/engine/chat"
	"leat/engine/token"
)

// HasChatTemplate tells whether the file says how a conversation is written. What it says may be wrong: then [Model.ChatTemplate] has
// the error.
func (m *Model) HasChatTemplate() bool { return m.text.hasTemplate() }

// ChatTemplate is the file's chat template. The error wraps [ErrNoTokenizer] or [ErrNoChatTemplate] where the file has none.
func (m *Model) ChatTemplate() (*chat.Template, error) {
	t := &m.text
	t.once.Do(func() { t.template, t.err = t.compile() })
	return t.template, t.err
}

// EncodeChat renders messages with the model's own template, the one other place
// control tokens come from: their spelling inside a message, a tool or an argument
// stays plain text. The error wraps [chat.ErrLimit] for a template that costs too much,
// and is a [*chat.RefusedError] for messages that it refuses. A template that makes no text of messages is an error too.
func (m *Model) EncodeChat(ctx context.Context, messages []chat.Message, o chat.RenderOptions) ([]token.ID, error) {
	text, err := m.RenderChat(ctx, messages, o)
	if err != nil {
		return nil, err
	}
	return m.text.tok.EncodeTemplate(text), nil
}

// RenderChat is the text that EncodeChat encodes, with what guards the messages in it.
func (m *Model) RenderChat(ctx context.Context, messages []chat.Message, o chat.RenderOptions) (string, error) {
	t, err := m.ChatTemplate()
	if err != nil {
		return "", err
	}
	given := o.Guard
	o.Guard = func(s string) string {
		if given != nil {
			s = given(s)
		}
		return m.text.tok.Guard(s)
	}
	text, err := t.Render(ctx, messages, o)
	if err != nil {
		return "", fmt.Errorf("%s: %w", chatTemplateKey, err)
	}
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("render %s: it yields nothing for %d messages, wanted some text", chatTemplateKey, len(messages))
	}
	return text, nil
}
