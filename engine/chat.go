package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"leat/engine/chat"
	"leat/engine/token"
)

const chatTemplateKey = "tokenizer.chat_template"

// HasChatTemplate tells whether the file says how a conversation is written. What it says may be wrong: then [Model.ChatTemplate] has
// the error.
func (m *Model) HasChatTemplate() bool {
	v, ok := m.file.Metadata.Get(chatTemplateKey)
	return ok && v != "" && m.tok != nil
}

// ChatTemplate is the file's chat template, compiled the first time it's asked for.
func (m *Model) ChatTemplate() (*chat.Template, error) {
	m.chatOnce.Do(func() { m.chat, m.chatErr = m.compileChat() })
	return m.chat, m.chatErr
}

func (m *Model) compileChat() (*chat.Template, error) {
	if !m.HasChatTemplate() {
		return nil, errors.New("encode a conversation: the file has no chat template, or no tokenizer we support")
	}
	source, ok := m.file.Metadata.String(chatTemplateKey)
	if !ok {
		v, _ := m.file.Metadata.Get(chatTemplateKey)
		return nil, fmt.Errorf("read %s: found a value of Go's type %T, wanted a string", chatTemplateKey, v)
	}
	text := func(id token.ID, ok bool) string {
		if !ok {
			return ""
		}
		return m.tok.Text(id)
	}
	t, err := chat.New(source, text(m.tok.BOS()), text(m.tok.EOS()))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", chatTemplateKey, err)
	}
	return t, nil
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
	return m.tok.EncodeTemplate(text), nil
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
		return m.tok.Guard(s)
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
