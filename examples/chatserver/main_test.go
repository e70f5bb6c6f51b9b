package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"leat/vk/vktest"
)

func TestChat(t *testing.T) {
	vktest.Open(t) // skips where there is none
	s, err := newServer(t.Context(), "../../cmd/leat/demo/leat-demo-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer s.model.Close()
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"a question", `{"messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 8}`, http.StatusOK},
		{"no JSON", `{`, http.StatusBadRequest},
		{"too long", `{"messages": [{"role": "user", "content": "` + strings.Repeat("again ", 1<<14) + `"}]}`, http.StatusBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			s.chat(w, httptest.NewRequest("POST", "/chat", strings.NewReader(c.body)))
			if w.Code != c.status {
				t.Fatalf("found status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			if c.status == http.StatusOK {
				checkEvents(t, w.Body.String())
			}
		})
	}
	if !s.mu.TryLock() {
		t.Error("the session is still held after its request")
	}
}

func checkEvents(t *testing.T, body string) {
	var text string
	var done bool
	for event := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		var e struct {
			Text, Error string
			Done        bool
		}
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			t.Fatalf("found event %q", event)
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Error != "" {
			t.Fatalf("event %q: %v", data, err)
		}
		text, done = text+e.Text, e.Done
	}
	if text == "" || !done {
		t.Errorf("found the answer %q, done %v", text, done)
	}
}
