package engine

import (
	"context"
	"errors"

	"leat/engine/chat"
	"leat/engine/token"
)

const chatTemplateKey = "tokenizer.chat_template"

// HasChatTemplate tells whether the file says how a conversation is written.
func (m *Model) HasChatTemplate() bool {
	source, ok := m.file.Metadata.String(chatTemplateKey)
	return ok && source != "" && m.tok != nil
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
	source, _ := m.file.Metadata.String(chatTemplateKey)
	text := func(id token.ID, ok bool) string {
		if !ok {
			return ""
		}
		return m.tok.Text(id)
	}
	return chat.New(source, text(m.tok.BOS()), text(m.tok.EOS()))
}

// EncodeChat renders messages with the model's own template, the one other place
// control tokens come from: their spelling inside a message, a tool or an argument
// stays plain text. The error wraps [chat.ErrLimit] for a template that costs too much,
// and is a [*chat.RefusedError] for messages that it refuses.
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
	return t.Render(ctx, messages, o)
}
