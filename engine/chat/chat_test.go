package chat

import (
	"strings"
	"testing"
)

const chatML = `{% for m in messages %}{{ '<|im_start|>' + m['role'] + '
' + m['content'] + '<|im_end|>' + '
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}`

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, source, want, fails string }{
		{"ChatML", chatML, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", ""},
		{"special tokens", `{{ bos_token }}{{ messages[1].content }}{{ eos_token }}`, "<s>Hi</s>", ""},
		{"refusal", `{{ raise_exception('no system prompt') }}`, "", "no system prompt"},
		{"reads no file", `{% include '/etc/passwd' %}`, "", "render"},
		{"unending", `{% for a in range(100000) %}{% for b in range(100000) %}xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}`, "", "16 MiB"},
		{"malformed", `{% for m in %}`, "", "compile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := New(c.source, "<s>", "</s>")
			got := ""
			if err == nil {
				got, err = tmpl.Render(t.Context(), []Message{{"system", "Be brief."}, {"user", "Hi"}})
			}
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %q, error %v; wanted an error with %q", got, err, c.fails)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, error %v; wanted %q", got, err, c.want)
			}
		})
	}
}
