package jinja

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"leat/tools/await"
)

const doubling = `{% set ns = namespace(s='x') %}{% for i in range(40) %}{% set ns.s = `

// hostile are templates that would run for ever or eat the machine.
var hostile = map[string]string{
	"nested loops without output": `{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}`,
	"nested loops with output":    `{% for a in range(100000) %}{% for b in range(100000) %}xxxxxxxx{% endfor %}{% endfor %}`,
	"endless recursion":           `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
	"recursion that branches":     `{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}`,
	"macros that call each other": `{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}`,
	"recursive loop":              `{% set l = [] %}{% set _ = l.append(l) %}{% for x in l recursive %}{{ loop(x) }}{% endfor %}`,
	"1 GB string":                 `{{ ('x' * 10**9) | length }}`,
	"1 GB string, reversed":       `{{ (10**9 * 'x') | length }}`,
	"beyond any integer":          `{{ 'xxxxxxxx' * 2**61 }}`,
	"1 GB list":                   `{{ ([1] * 10**9) | length }}`,
	"doubling by ~":               doubling + `ns.s ~ ns.s %}{% endfor %}{{ ns.s | length }}`,
	"doubling by +":               doubling + `ns.s + ns.s %}{% endfor %}{{ ns.s | length }}`,
	"doubling by join":            doubling + `[ns.s, ns.s] | join %}{% endfor %}{{ ns.s | length }}`,
	"doubling by replace":         doubling + `ns.s.replace('x', 'xx') %}{% endfor %}`,
	"doubling by format":          doubling + `'%s%s' % (ns.s, ns.s) %}{% endfor %}`,
	"doubling by str.format":      doubling + `'{0}{0}'.format(ns.s) %}{% endfor %}`,
	"doubling by a block":         doubling + `0 %}{% set t %}{{ ns.t }}{{ ns.t }}x{% endset %}{% set ns.t = t %}{% endfor %}{{ ns.t | length }}`,
	"doubling by repr":            doubling + `[ns.s, ns.s] | string %}{% endfor %}`,
	"doubling by tojson":          doubling + `[ns.s, ns.s] | tojson %}{% endfor %}`,
	"doubling lists":              `{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = ns.l + ns.l %}{% endfor %}`,
	"join with a long separator":  `{% set s = 'x' * 10**6 %}{{ range(1000) | join(s) | length }}`,
	"many copies of a string":     `{% set s = 'x' * 10**6 %}{% set l = [] %}{% for i in range(1000) %}{% set _ = l.append(s ~ i) %}{% endfor %}{{ l | length }}`,
	"shared lists printed":        `{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}`,
	"shared lists as JSON":        `{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}`,
	"shared lists compared":       `{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(60) %}{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}`,
	"a list in itself printed":    `{% set l = [] %}{% set _ = l.append(l) %}{{ l }}`,
	"a list in itself as JSON":    `{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}`,
	"a list in itself compared":   `{% set l = [] %}{% set _ = l.append(l) %}{% set k = [] %}{% set _ = k.append(k) %}{{ l == k }}`,
	"a list as a key":             `{% set l = [] %}{% set _ = l.append(l) %}{{ {(l,): 1} }}`,
	"a list that a loop grows":    `{% set l = [1] %}{% for i in range(100000) %}{% set _ = l.extend(l) %}{% endfor %}`,
	"shared tuples as a key":      `{% set ns = namespace(l=(1,)) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ {ns.l: 1} | length }}`,
	"escaped":                     `{% set s = '<' * 10**6 %}{% for i in range(1000) %}{{ s | e | length }}{% endfor %}`,
	"tags stripped":               `{% set s = '<!--' * 10**6 %}{% for i in range(1000) %}{{ s | striptags | length }}{% endfor %}`,
	"groups of zeros":             `{{ '{:0200000000,}'.format(1) }}`,
	"width by a field":            `{{ '{:{w}}'.format(1, w=10**9) }}`,
	"deep targets":                `{% for ` + strings.Repeat("(", 100000) + `a in x %}{% endfor %}`,
	"range":                       `{{ range(10**9) | list | length }}`,
	"range by step":               `{{ range(10**18, 0, -1) | length }}`,
	"width by %":                  `{{ '%0999999999d' % 1 }}`,
	"width by format":             `{{ '{:>999999999}'.format(1) }}`,
	"width by center":             `{{ 'a'.center(10**9) }}`,
	"width by ljust":              `{{ 'a'.ljust(10**12, 'x') }}`,
	"width by zfill":              `{{ 'a'.zfill(10**12) }}`,
	"width of indent":             `{{ ('a\n' * 1000) | indent(10**9) }}`,
	"indent of JSON":              `{{ [[[[1]]]] | tojson(indent=10**9) }}`,
	"fill of batch":               `{% for i in range(100000) %}{{ [1] | batch(10**9, 0) | list | length }}{% endfor %}`,
	"slices of slice":             `{% for i in range(100000) %}{{ [1] | slice(10**9) | list | length }}{% endfor %}`,
	"precision":                   `{{ '%.999999999f' % 1.5 }}`,
	"searches":                    `{% set s = 'a' * 10**6 %}{% for i in range(100000) %}{{ 'b' in s }}{% endfor %}`,
	"searches of many":            `{% set s = 'ab' * 10**5 %}{% for i in range(100000) %}{{ s.find('b' * 1000) }}{% endfor %}`,
	"lengths":                     `{% set s = 'a' * 10**6 %}{% for i in range(100000) %}{{ s | length }}{% endfor %}`,
	"compared strings":            `{% set s = 'a' * 10**6 %}{% set t = 'a' * 10**6 %}{% for i in range(100000) %}{{ s == t }}{% endfor %}`,
	"runes":                       `{% set s = 'é' * 10**5 %}{% for i in range(100000) %}{{ s[-1] }}{% endfor %}`,
	"strip of many":               `{{ ('a' * 10**6).strip('b' * 10**6 ~ 'a') }}`,
	"sorts":                       `{% for i in range(1000) %}{% set _ = range(100000) | list | sort(reverse=true) %}{% endfor %}`,
	"membership":                  `{% set l = range(100000) | list %}{% for i in l %}{{ -1 in l }}{% endfor %}`,
	"dicts":                       `{% set d = {} %}{% for i in range(100000) %}{% for j in range(1000) %}{% set _ = d.update({i ~ '.' ~ j: 1}) %}{% endfor %}{% endfor %}`,
	"many arguments":              `{% macro f() %}{{ varargs | length }}{% endmacro %}{% for i in range(100000) %}{{ f(*range(100000)) }}{% endfor %}`,
	"deep parentheses":            `{{ ` + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + ` }}`,
	"deep lists":                  `{{ ` + strings.Repeat("[", 100000),
	"deep ifs":                    strings.Repeat("{% if 1 %}", 50000) + strings.Repeat("{% endif %}", 50000),
	"deep nots":                   `{{ ` + strings.Repeat("not ", 100000) + `1 }}`,
	"deep minus":                  `{{ ` + strings.Repeat("- ", 100000) + `1 }}`,
	"long sum":                    `{{ 1` + strings.Repeat("+1", 200000) + ` }}`,
	"long chain of filters":       `{{ 1` + strings.Repeat("|abs", 100000) + ` }}`,
	"long chain of attributes":    `{{ a` + strings.Repeat(".a", 100000) + ` }}`,
	"long chain of else":          `{{ ` + strings.Repeat("1 if 0 else ", 50000) + `1 }}`,
	"too long":                    strings.Repeat("x", maxSource+1),
}

// With less than the default limits most of these are quick; the rest of this list
// shows what the defaults are worth.
var atDefaults = []string{"nested loops without output", "many arguments", "dicts", "1 GB string", "doubling by ~", "doubling by a block", "join with a long separator"}

func TestHostile(t *testing.T) {
	for name, source := range hostile {
		limits := Limits{Steps: 5e5, Bytes: 32 << 20}
		if slices.Contains(atDefaults, name) && !testing.Short() {
			limits = Limits{}
		}
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tmpl, err := Parse(source)
			got := ""
			if err == nil {
				got, err = tmpl.Render(await.Context(t), nil, Options{Limits: limits})
			}
			runtime.ReadMemStats(&after)
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %.40q, %v, wanted an error of the template", got, err)
			}
			if grew := int64(after.HeapSys) - int64(before.HeapSys); grew > 1<<30 {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
			t.Logf("%d MiB asked for: %.120v", (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"refusal", `{{ raise_exception('no system prompt') }}`, "line 1: the template refuses: no system prompt"},
		{"line", "a\n{% if 1 %}\n{{ x.y }}\n{% endif %}", "line 3: 'x' is undefined"},
		{"line of a parse error", "a\n{% if 1 %}", `line 2: found the end of the template, wanted "endif"`},
		{"no end", "{{ 1", `line 1: a tag has no end: wanted "}}"`},
		{"no statement", "{% foo %}", `line 1: no statement "foo" can stand here`},
		{"stray end", "{% endif %}", `line 1: no statement "endif" can stand here`},
		{"file", "{% include '/etc/passwd' %}", `line 1: "include" is not supported: a chat template stands alone`},
		{"no filter", "{{ 1 | foo }}", `line 1: no filter is named "foo"`},
		{"no test", "{{ 1 is foo }}", `line 1: no test is named "foo"`},
		{"types", "{{ 1 + 'a' }}", "line 1: int 1 + str 'a' can't be"},
		{"zero", "{{ 1 // 0 }}", "line 1: 1 // 0: division by zero"},
		{"overflow", "{{ 2 ** 63 }}", "line 1: 2 ** 63 is beyond 64 bits"},
		{"not a function", "{{ 'a'() }}", "line 1: str 'a' is called, but it is no function"},
		{"private", "{{ ''.__class__.__mro__ }}", "line 1: str has no attribute '__class__'"},
		{"break outside", "{% break %}", "line 1: break is outside of a loop"},
		{"unpack", "{% for a, b in [[1]] %}{% endfor %}", "line 1: found 1 values to unpack, wanted 2"},
		{"not a namespace", "{% set d = {} %}{% set d.x = 1 %}", `line 1: can't set "x" of d, which is no namespace`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := render(t, c.source, nil)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %q, error %v; wanted %q", got, err, c.want)
			}
		})
	}
}

// looked is a context that has ended when it is looked at often enough.
type looked struct {
	context.Context
	left int
}

func (l *looked) Err() error {
	if l.left--; l.left > 0 {
		return l.Context.Err()
	}
	return context.Canceled
}

func TestCanceled(t *testing.T) {
	tmpl, err := Parse(hostile["nested loops without output"])
	if err != nil {
		t.Fatal(err)
	}
	ctx := &looked{Context: await.Context(t), left: 3}
	_, err = tmpl.Render(ctx, nil, Options{Limits: Limits{Steps: 1 << 60}})
	if !errors.Is(err, context.Canceled) || ctx.left != 0 {
		t.Errorf("error %v, %d looks before the context's end", err, ctx.left)
	}
}

// One rendering leaves nothing behind for the next.
func TestAgain(t *testing.T) {
	tmpl, err := Parse(`{% set l = [1] %}{% set _ = l.append(m | length) %}{% set _ = m.append(1) %}{{ l }}`)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := tmpl.Render(t.Context(), map[string]Value{"m": &List{}}, Options{})
		if err != nil || got != "[1, 0]" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, source := range hostile {
		if len(source) < 1000 {
			f.Add(source)
		}
	}
	f.Add(`{%- for m in messages -%}{{ m['role'] ~ m.content | trim }}{%- endfor %}{% if x is defined and not y %}{{ {'a': [1]} | tojson(indent=2) }}{% endif %}`)
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err == nil {
			messages := &List{Items: []Value{"x", &Dict{}}}
			_, err = tmpl.Render(t.Context(), map[string]Value{"messages": messages}, Options{Limits: Limits{Steps: 1e5, Bytes: 1 << 20, Output: 1 << 16}})
		}
		if err != nil && strings.Contains(err.Error(), "fault of our interpreter") {
			t.Fatal(err)
		}
	})
}
