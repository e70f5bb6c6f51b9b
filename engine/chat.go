package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"leat/engine/chat"
	"leat/engine/token"
)

// Chat is a conversation in a session. It keeps what was said, renders it with the model's own template, tells thinking from answers, and
// runs only what is new since the last turn. One goroutine owns it, and its session.
type Chat struct {
	Messages []chat.Message     // what was said, oldest first; may be changed between turns
	Params   Params             // of the next answer
	Options  chat.RenderOptions // tools, and arguments of the template; Now nil: when the first answer began

	s *Session
}

// NewChat begins a conversation in session s, with messages that stand before the first question, such as a system prompt.
func NewChat(s *Session, p Params, messages ...chat.Message) *Chat {
	return &Chat{Messages: slices.Clone(messages), Params: p, s: s}
}

// Piece is what a [Chat] yields for each token.
type Piece struct {
	Text     string // of the answer
	Thinking string // what the model thinks before it answers
	Token    Token  // that both come from
}

// Say asks the model and yields the pieces of its answer; breaking the loop or canceling ctx stops it. Question and answer then stand in
// Messages; of an answer that was stopped, what was yielded. A failure comes once, last, as [Session.Generate] and [Model.EncodeChat] have
// it; where it comes before the first token, the question is taken back.
func (c *Chat) Say(ctx context.Context, text string) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		before, said := len(c.Messages), false
		c.Messages = append(c.Messages, chat.Message{Role: "user", Content: text})
		for p, err := range c.Answer(ctx) {
			if err != nil && !said {
				c.Messages = c.Messages[:before]
			}
			if said = true; !yield(p, err) {
				return
			}
		}
	}
}

// Answer is Say where Messages ends with what is to be answered already, as with the result of a tool.
func (c *Chat) Answer(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		r, rest, err := c.begin(ctx)
		if err != nil {
			yield(Piece{}, fmt.Errorf("chat: %w", err))
			return
		}
		defer func() { c.Messages = append(c.Messages, r.messages()...) }()
		for t, err := range c.s.Generate(ctx, rest, c.Params) {
			if err != nil {
				yield(Piece{}, err)
				return
			}
			if !yield(r.piece(t), nil) {
				return
			}
		}
	}
}

// reply is an answer while it comes.
type reply struct {
	split  *chat.Splitter
	tokens int
}

// begin renders the conversation, and returns the tokens of it that have yet to run.
func (c *Chat) begin(ctx context.Context) (r *reply, rest []token.ID, err error) {
	if c.Options.Now == nil { // a clock that goes on would have each prompt run again from its first date on
		began := time.Now()
		c.Options.Now = func() time.Time { return began }
	}
	m := c.s.m
	template, err := m.ChatTemplate()
	if err != nil {
		return nil, nil, err
	}
	rendered, err := m.RenderChat(ctx, c.Messages, c.Options)
	if err != nil {
		return nil, nil, err
	}
	rest, err = c.s.Reuse(m.text.tok.EncodeTemplate(rendered))
	return &reply{split: template.NewSplitter(rendered)}, rest, err
}

// piece takes a token.
func (r *reply) piece(t Token) Piece {
	r.tokens++
	p := Piece{Token: t}
	p.Thinking, p.Text = r.split.Push(t.Text, t.Control)
	if t.Stop != StopNone {
		thinking, text := r.split.Flush()
		p.Thinking, p.Text = p.Thinking+thinking, p.Text+text
	}
	return p
}

// messages is the reply as the conversation keeps it: none where no token came.
func (r *reply) messages() []chat.Message {
	if r.tokens == 0 {
		return nil
	}
	thinking, answer := r.split.Reply()
	return []chat.Message{{Role: "assistant", Content: answer, Thinking: thinking}}
}
