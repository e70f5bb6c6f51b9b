package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"leat/engine/chat"
)

// dialog makes a conversation of n questions and their answers, and one open question.
func dialog(n int) *conversation {
	c := &conversation{System: "Be brief."}
	for i := range n {
		c.ask(fmt.Sprintf("q%d ", i))
		c.answer(fmt.Sprintf("a%d ", i), "")
	}
	c.ask("open")
	return c
}

func TestConversationPrompt(t *testing.T) {
	c := dialog(2)
	if got := c.text(); got != "q0 a0 q1 a1 open" {
		t.Errorf("text: got %q", got)
	}
	roles := func() (list []string) {
		for _, m := range c.prompt() {
			list = append(list, m.Role+":"+m.Content)
		}
		return list
	}
	if got := strings.Join(roles(), "|"); got != "system:Be brief.|user:q0 |assistant:a0 |user:q1 |assistant:a1 |user:open" {
		t.Errorf("prompt: got %s", got)
	}
	if n := c.dropOldest(); n != 2 {
		t.Errorf("dropped %d messages, wanted a question and its answer", n)
	}
	if got := strings.Join(roles(), "|"); got != "system:Be brief.|user:q1 |assistant:a1 |user:open" {
		t.Errorf("the system prompt stays and the oldest turn goes: got %s", got)
	}
	c.dropOldest()
	if n := c.dropOldest(); n != 0 || c.text() != "open" {
		t.Errorf("the open question went: %d, %q", n, c.text())
	}
	if len(c.Messages) != 5 {
		t.Errorf("%d messages are kept, wanted all 5", len(c.Messages))
	}
}

func TestConversationRetract(t *testing.T) {
	for _, c := range []struct {
		name string
		conv *conversation
		want string
		ok   bool
		left int
	}{
		{"nothing said", &conversation{}, "", false, 0},
		{"open question", dialog(1), "open", true, 2},
		{"answered", &conversation{Messages: []message{{Role: roleUser, Content: "q"}, {Role: roleAssistant, Content: "a"}}, Dropped: 1}, "q", true, 0},
		{"answer alone", &conversation{Messages: []message{{Role: roleAssistant, Content: "a"}}}, "", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := c.conv.retract()
			if got != c.want || ok != c.ok || len(c.conv.Messages) != c.left || c.conv.Dropped > c.left {
				t.Errorf("got %q, %v, left %+v", got, ok, c.conv)
			}
		})
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "talk.json")
	c, s := dialog(2), defaultSettings()
	c.answer("a <b> & \x00\n“c”", "hm")
	c.Dropped = 2
	s.Seed, s.Stop = 7, []string{"\n"}
	for range 2 { // the second replaces the first
		if err := c.saved("demo", &s).write(path); err != nil {
			t.Fatal(err)
		}
	}
	var loaded settings
	got, model, err := loadConversation(path, &loaded)
	if err != nil || !reflect.DeepEqual(got, *c) || model != "demo" || !reflect.DeepEqual(loaded.values(), s.values()) {
		t.Errorf("got %+v of %q with %v, error %v; wanted %+v", got, model, loaded, err, c)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("saving left %v", entries)
	}
	if err := c.saved("demo", &s).write(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("saved into a folder that isn't there")
	}
}

func TestLoadRefuses(t *testing.T) {
	const head = `{"format":"leat conversation","version":1,`
	for _, c := range []struct{ name, file, want string }{
		{"no JSON", "once upon a time", "not a saved conversation"},
		{"other JSON", `{"messages":[]}`, "not a saved conversation"},
		{"later version", `{"format":"leat conversation","version":2}`, "found version 2, wanted 1"},
		{"unknown role", head + `"messages":[{"role":"root","content":"x"}]}`, `found role "root"`},
		{"hidden system message", head + `"messages":[{"role":"system","content":"x"}]}`, `found role "system"`},
		{"more dropped than there are", head + `"messages":[],"dropped":1}`, "found 1 messages dropped of 0"},
		{"negative dropped", head + `"messages":[],"dropped":-1}`, "found -1 messages"},
		{"unknown setting", head + `"messages":[],"settings":{"heat":"1"}}`, `no setting "heat"`},
		{"bad setting", head + `"messages":[],"settings":{"seed":"1","temp":"-1"}}`, "0 or more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte(c.file), 0o644); err != nil {
				t.Fatal(err)
			}
			s := defaultSettings()
			if _, _, err := loadConversation(path, &s); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, wanted one with %q", err, c.want)
			}
			if s.Seed != 0 {
				t.Error("a file that was refused changed a setting")
			}
		})
	}
}

func TestReadFileHasALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := readFile(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("got %q, error %v", data, err)
	}
	if _, err := readFile(path, 4); err == nil {
		t.Error("read more than the limit")
	}
}

// A conversation's template is told one moment, until all that was said is cleared: with a time in the system prompt the text of a turn
// begins with all of the last one's.
func TestConversationMoment(t *testing.T) {
	template, err := chat.New("{{ strftime_now('%Y-%m-%d %H:%M:%S.%f') }}{% for m in messages %}|{{ m.content }}{% endfor %}", chat.Vocabulary{})
	if err != nil {
		t.Fatal(err)
	}
	c := conversation{began: time.Now().Add(-time.Hour)}
	text := func() string {
		text, err := template.Render(t.Context(), c.prompt(), chat.RenderOptions{Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	c.ask("one")
	first := text()
	c.answer("two", "")
	c.ask("three")
	if second := text(); !strings.HasPrefix(second, first) {
		t.Errorf("the second turn's text %q does not begin with the first one's, %q", second, first)
	}
	c.clear()
	c.ask("one")
	if third := text(); third == first {
		t.Errorf("after all was cleared the text is still %q", third)
	}
}
