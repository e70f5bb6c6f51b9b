package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"leat/engine/chat"
	"leat/internal/output"
)

// message is one turn as it is kept and saved.
type message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`
}

const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
)

// conversation is what was said. It knows nothing of a model.
type conversation struct {
	Raw      bool // plain text that the model goes on with: turns aren't marked
	System   string
	Messages []message // user and assistant, oldest first
	Dropped  int       // the oldest of these that the model isn't given any more
	began    time.Time // the moment that its template is told, all along; zero: it has not begun
}

// now is that moment: with a clock that goes on, a time in the system prompt would have each turn prefilled whole.
func (c *conversation) now() time.Time {
	if c.began.IsZero() {
		c.began = time.Now()
	}
	return c.began
}

func (c *conversation) ask(text string) {
	c.Messages = append(c.Messages, message{Role: roleUser, Content: text})
}

func (c *conversation) answer(text, thinking string) {
	c.Messages = append(c.Messages, message{Role: roleAssistant, Content: text, Thinking: thinking})
}

// retract takes the last question back, with its answer where it has one.
func (c *conversation) retract() (question string, ok bool) {
	n := len(c.Messages)
	if n > 0 && c.Messages[n-1].Role == roleAssistant {
		n--
	}
	if n == 0 || c.Messages[n-1].Role != roleUser {
		return "", false
	}
	question = c.Messages[n-1].Content
	c.Messages = c.Messages[:n-1]
	c.Dropped = min(c.Dropped, len(c.Messages))
	return question, true
}

// unanswered takes back a last question without an answer, as a talk has one that ended
// there.
func (c *conversation) unanswered() (question string) {
	if n := len(c.Messages); n > 0 && c.Messages[n-1].Role == roleUser {
		question, _ = c.retract()
	}
	return question
}

// clear forgets what was said, and when; the system prompt stays.
func (c *conversation) clear() { c.Messages, c.Dropped, c.began = nil, 0, time.Time{} }

// dropOldest takes the oldest question and its answer from what the model is given and
// returns how many messages that were: 0 when only the last question is left.
func (c *conversation) dropOldest() int {
	for i := c.Dropped + 1; i < len(c.Messages); i++ {
		if c.Messages[i].Role == roleUser {
			n := i - c.Dropped
			c.Dropped = i
			return n
		}
	}
	return 0
}

// prompt is what the model is given, for its chat template.
func (c *conversation) prompt() []chat.Message {
	var list []chat.Message
	if c.System != "" {
		list = append(list, chat.Message{Role: roleSystem, Content: c.System})
	}
	for _, m := range c.Messages[c.Dropped:] {
		list = append(list, chat.Message{Role: m.Role, Content: m.Content, Thinking: m.Thinking})
	}
	return list
}

// text is what the model is given where there is no template.
func (c *conversation) text() string {
	var b strings.Builder
	for _, m := range c.Messages[c.Dropped:] {
		b.WriteString(m.Content)
	}
	return b.String()
}

// saved is a conversation as a file.
type saved struct {
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	Model    string            `json:"model"`
	Raw      bool              `json:"raw,omitempty"`
	System   string            `json:"system,omitempty"`
	Messages []message         `json:"messages"`
	Dropped  int               `json:"dropped,omitempty"`
	Settings map[string]string `json:"settings"`
}

const (
	savedFormat  = "leat conversation"
	savedVersion = 1
	maxSaved     = 64 << 20 // of a file to load: far above any context
)

// saved is the conversation as a file has it.
func (c *conversation) saved(model string, s *settings) *saved {
	return &saved{
		Format: savedFormat, Version: savedVersion, Model: model, Raw: c.Raw, System: c.System,
		Messages: append([]message{}, c.Messages...), Dropped: c.Dropped, Settings: s.values(),
	}
}

// write writes the conversation to path: the whole file, or none of it.
func (f *saved) write(path string) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

// holds tells whether nothing of old would be lost with f in its place.
func (f *saved) holds(old *saved) bool {
	n := len(old.Messages)
	return n <= len(f.Messages) && slices.Equal(f.Messages[:n], old.Messages) && (old.System == "" || old.System == f.System)
}

// loadConversation reads what [saved.write] wrote, and sets s to its settings.
func loadConversation(path string, s *settings) (c conversation, model string, err error) {
	f, err := readSaved(path)
	if err == nil {
		err = s.changeAll(f.Settings)
	}
	if err != nil {
		return conversation{}, "", fmt.Errorf("load a conversation from %s: %w", path, err)
	}
	return f.conversation(), f.Model, nil
}

func (f *saved) conversation() conversation {
	return conversation{Raw: f.Raw, System: f.System, Messages: slices.Clone(f.Messages), Dropped: f.Dropped}
}

// readSaved reads a conversation's file and checks it.
func readSaved(path string) (*saved, error) {
	if output.IsStream(path) {
		return nil, errors.New("it is no regular file")
	}
	data, err := readFile(path, maxSaved)
	if err != nil {
		return nil, err
	}
	var f saved
	if err := json.Unmarshal(data, &f); err != nil || f.Format != savedFormat {
		return nil, withHint(errors.New("it is not a saved conversation"), "/save FILE makes one")
	}
	if f.Version != savedVersion {
		return nil, fmt.Errorf("found version %d, wanted %d", f.Version, savedVersion)
	}
	for i, m := range f.Messages {
		if m.Role != roleUser && m.Role != roleAssistant {
			return nil, fmt.Errorf("message %d: found role %q, wanted user or assistant", i, m.Role)
		}
	}
	if f.Dropped < 0 || f.Dropped > len(f.Messages) {
		return nil, fmt.Errorf("found %d messages dropped of %d", f.Dropped, len(f.Messages))
	}
	return &f, nil
}

// writeFile replaces path at once, so that no crash leaves half a file. What was typed
// is nobody else's to read.
func writeFile(path string, data []byte) error {
	return output.Write(path, data, output.Options{Perm: 0o600})
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is longer than %s", formatSize(limit))
	}
	return data, err
}
