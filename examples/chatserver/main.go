// Command chatserver answers chats over HTTP, as server-sent events:
//
//	go run ./chatserver MODEL.gguf
//	curl -N localhost:8080/chat -d '{"messages": [{"role": "user", "content": "Tell me a story."}]}'
//
// "max_tokens" beside the messages bounds the answer. An event has a piece of the answer, "text", or of what the model thinks before it,
// "thinking". One session answers one request at a time; the others wait.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/sample"
)

type server struct {
	model   *engine.Model
	mu      sync.Mutex // held by the request that is being answered
	session *engine.Session
	first   time.Time // when the conversation began that is going on
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: chatserver MODEL.gguf")
	}
	s, err := newServer(context.Background(), os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /chat", s.chat)
	log.Print("listening on localhost:8080")
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}

func newServer(ctx context.Context, path string) (*server, error) {
	m, err := engine.Load(ctx, path, engine.Options{})
	if err != nil {
		return nil, err
	}
	session, err := m.NewSession()
	return &server{model: m, session: session}, err
}

// began is the moment that a conversation's template is told: of its first turn, so that what was said before need not run again.
func (s *server) began(messages []chat.Message) func() time.Time {
	if len(messages) < 3 { // a system prompt and a question
		s.first = time.Now()
	}
	first := s.first
	return func() time.Time { return first }
}

func (s *server) chat(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages  []chat.Message
		MaxTokens int `json:"max_tokens"` // 0: until the model stops
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	params := engine.Params{Params: sample.Params{Temperature: 0.8}, MaxTokens: request.MaxTokens}
	c := engine.NewChat(s.session, params, request.Messages...) // it runs what the session does not hold of the last turn
	c.Options.Now = s.began(request.Messages)
	answered := false
	for p, err := range c.Answer(r.Context()) {
		if err != nil && !answered { // a template refuses messages, or they are longer than the context
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answered = true
		w.Header().Set("Content-Type", "text/event-stream")
		event := map[string]any{"text": p.Text, "thinking": p.Thinking, "done": p.Token.Stop != engine.StopNone}
		if err != nil {
			event = map[string]any{"error": err.Error()}
		}
		data, _ := json.Marshal(event) // strings and a bool: it can't fail
		fmt.Fprintf(w, "data: %s\n\n", data)
		http.NewResponseController(w).Flush()
	}
}
