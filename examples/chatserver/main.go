// Command chatserver answers chats over HTTP, as server-sent events:
//
//	go run ./chatserver MODEL.gguf
//	curl -N localhost:8080/chat -d '{"messages": [{"role": "user", "content": "Tell me a story."}]}'
//
// "max_tokens" beside the messages bounds the answer. One model serves all. Two requests have a session at a time, the others wait for one.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"

	"leat/engine"
	"leat/engine/chat"
	"leat/engine/sample"
)

const sessions = 2 // that answer at a time

type server struct {
	model *engine.Model
	free  chan *engine.Session
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
	m, err := engine.Load(ctx, path, engine.Options{Sessions: sessions})
	if err != nil {
		return nil, err
	}
	s := &server{model: m, free: make(chan *engine.Session, sessions)}
	for range sessions {
		session, err := m.NewSession()
		if err != nil {
			m.Close()
			return nil, err
		}
		s.free <- session
	}
	return s, nil
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
	ids, err := s.model.EncodeChat(r.Context(), request.Messages, chat.RenderOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	session := <-s.free
	defer func() { s.free <- session }()
	rest, err := session.Reuse(ids) // what the last turn left there need not run again
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	params := engine.Params{Params: sample.Params{Temperature: 0.8, Seed: rand.Uint64()}, MaxTokens: request.MaxTokens}
	for tok, err := range session.Generate(r.Context(), rest, params) {
		event := map[string]any{"text": tok.Text, "done": tok.Stop != engine.StopNone}
		if err != nil {
			event = map[string]any{"error": err.Error()}
		}
		data, _ := json.Marshal(event) // strings and a bool: it can't fail
		fmt.Fprintf(w, "data: %s\n\n", data)
		http.NewResponseController(w).Flush()
	}
}
