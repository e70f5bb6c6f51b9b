package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

type filterFunc func(m *machine, v Value, a args) Value

// filters is filled by init, for some of them look others up here.
var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"abs": filterAbs, "attr": filterAttr, "batch": filterBatch, "capitalize": onString("capitalize"), "center": keeping(filterCenter),
		"count": filterLength, "d": filterDefault, "default": filterDefault, "dictsort": filterDictsort, "e": filterEscape,
		"escape": filterEscape, "first": filterFirst, "float": filterFloat, "forceescape": filterForceEscape, "format": filterFormat,
		"from_json": filterFromJSON, "fromjson": filterFromJSON, "groupby": filterGroupby, "indent": keeping(filterIndent), "int": filterInt,
		"items": filterItems, "join": filterJoin, "last": filterLast, "length": filterLength, "list": filterList,
		"lower": onString("lower"), "map": filterMap, "max": filterMax, "min": filterMin, "reject": filterReject,
		"rejectattr": filterRejectattr, "replace": filterReplace, "reverse": keeping(filterReverse), "round": filterRound, "safe": filterSafe,
		"select": filterSelect, "selectattr": filterSelectattr, "slice": filterSlice, "sort": filterSort, "string": keeping(filterString),
		"striptags": filterStripTags, "sum": filterSum, "title": filterTitle, "tojson": filterToJSON, "trim": keeping(filterTrim), "truncate": keeping(filterTruncate),
		"unique": filterUnique, "upper": onString("upper"), "urlencode": filterURLEncode,
		"wordcount": filterWordcount, "xmlattr": filterXMLAttr,
	}
}

// onString makes a filter of a string's method.
func onString(name string) filterFunc {
	return keeping(func(m *machine, v Value, a args) Value { return stringMethods[name](m, m.str(v), a) })
}

func filterAbs(m *machine, v Value, a args) Value {
	if n, ok := number(v).(int64); ok && n != math.MinInt64 {
		return max(n, -n)
	}
	f, ok := float(v)
	if !ok {
		m.fail("abs of %s", m.describe(v))
	}
	return math.Abs(f)
}

func filterAttr(m *machine, v Value, a args) Value {
	need(m, "attr", a, "name")
	name := m.str(m.take("attr", a, "name")[0])
	if x, ok := m.attr(v, name); ok {
		return x
	}
	return undefined{typeName(v) + " has no attribute '" + name + "'"}
}

func filterCenter(m *machine, v Value, a args) Value {
	width := m.int("center", m.take("center", a, "width")[0], 80)
	return stringMethods["center"](m, m.str(v), args{pos: []Value{width}})
}

func filterDefault(m *machine, v Value, a args) Value {
	p := m.take("default", a, "default_value", "boolean")
	if _, ok := v.(undefined); !ok && (!m.truth(p[1]) || m.truth(v)) {
		return v
	}
	if len(a.pos) == 0 && p[0] == nil && !slices.Contains(a.names, "default_value") {
		return ""
	}
	return p[0]
}

func filterFormat(m *machine, v Value, a args) Value {
	if len(a.kw) > 0 {
		d := &Dict{}
		for i, n := range a.names {
			d.Set(n, a.kw[i])
		}
		return m.arith("%", textOf(m, v), d)
	}
	return m.arith("%", textOf(m, v), &List{Items: a.pos, tuple: true})
}

func filterIndent(m *machine, v Value, a args) Value {
	p := m.take("indent", a, "width", "first", "blank")
	s, ok := bare(v).(string)
	if !ok {
		m.fail("indent of %s, wanted a string", m.describe(v))
	}
	pad, ok := bare(p[0]).(string)
	if !ok {
		pad = m.repeat(" ", m.int("indent", p[0], 4))
	}
	lines := strings.Split(s, "\n")
	m.spend(m.mul(len(lines), len(pad)+16) + len(s))
	for i, line := range lines {
		if i == 0 && !m.truth(p[1]) || i > 0 && line == "" && !m.truth(p[2]) {
			continue
		}
		lines[i] = pad + line
	}
	return strings.Join(lines, "\n")
}

func filterInt(m *machine, v Value, a args) Value {
	p := m.take("int", a, "default", "base")
	def := p[0]
	if len(a.pos) == 0 && !slices.Contains(a.names, "default") {
		def = int64(0)
	}
	switch n := number(bare(v)).(type) {
	case undefined:
		m.fail("%s", n.what)
	case int64, bigInt:
		return n
	case float64:
		return whole(m, n)
	case string:
		base := int(m.int("int", p[1], 10))
		if base < 2 && base != 0 || base > 36 {
			return def
		}
		n = strings.TrimFunc(n, isSpace)
		if i, err := strconv.ParseInt(withoutBase(n, base), base, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return whole(m, f)
		}
	}
	return def
}

// whole cuts a float off at its point.
func whole(m *machine, f float64) int64 {
	if math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		m.fail("float %s as an integer is beyond 64 bits", floatText(f, "inf", "nan"))
	}
	return int64(f)
}

// withoutBase drops what Python takes beside a base that is given: the prefix that names it, and a _ between digits.
func withoutBase(s string, base int) string {
	if base != 0 && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") && !strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "_", "")
	}
	digits := strings.TrimLeft(s, "+-")
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix == "" || len(s)-len(digits) > 1 || len(digits) < 3 || !strings.EqualFold(digits[:2], prefix) {
		return s
	}
	return s[:len(s)-len(digits)] + digits[2:]
}

func filterFloat(m *machine, v Value, a args) Value {
	p := m.take("float", a, "default")
	if f, ok := float(v); ok {
		return f
	}
	switch v := v.(type) {
	case undefined:
		m.fail("%s", v.what)
	case bigInt:
		m.fail("%s as a float is beyond 64 bits", v)
	}
	if s, ok := bare(v).(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64); err == nil {
			return f
		}
	}
	if p[0] == nil {
		return 0.0
	}
	return p[0]
}

func filterRound(m *machine, v Value, a args) Value {
	p := m.take("round", a, "precision", "method")
	f, ok := float(v)
	if !ok {
		m.fail("round of %s", m.describe(v))
	}
	precision := m.int("round", p[0], 0)
	scale := math.Pow(10, float64(precision))
	switch method := p[1]; method {
	case nil, "common":
		return round(m, v, f, precision)
	case "ceil":
		return (math.Ceil(f*scale) + 0) / scale // Python's has no -0
	case "floor":
		return math.Floor(f*scale) / scale
	}
	m.fail("round: found method %s, wanted common, ceil or floor", m.describe(p[1]))
	return nil
}

// round rounds as Python does: an int stays one, and what a float's digits say decides, not its product with a power of 10.
func round(m *machine, v Value, f float64, precision int64) Value {
	if n, ok := number(v).(int64); ok {
		if precision >= 0 {
			return n
		}
		if precision < -18 {
			return int64(0)
		}
		unit := int64(math.Pow(10, float64(-precision)))
		return int64(math.RoundToEven(float64(n)/float64(unit))) * unit
	}
	if precision < 0 {
		scale := math.Pow(10, float64(-precision))
		return math.RoundToEven(f/scale) * scale
	}
	if precision > 323 { // more digits than any float's last one
		return f
	}
	m.spend(400)
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

func filterLength(m *machine, v Value, a args) Value { return int64(m.length(v)) }

func filterReplace(m *machine, v Value, a args) Value {
	need(m, "replace", a, "old", "new")
	p := m.take("replace", a, "old", "new", "count")
	pos := []Value{m.str(p[0]), m.str(p[1])}
	if p[2] != nil {
		pos = append(pos, p[2])
	}
	return stringMethods["replace"](m, m.str(v), args{pos: pos})
}

func filterString(m *machine, v Value, a args) Value { return m.str(v) }

// filterTitle is Jinja's: it splits at white space and at "-([{<".
func filterTitle(m *machine, v Value, a args) Value {
	s := m.str(v)
	m.spend(m.mul(4, len(s)))
	var b strings.Builder
	start := true
	for _, r := range s {
		if start {
			b.WriteString(strings.ToUpper(string(r)))
		} else {
			b.WriteString(strings.ToLower(string(r)))
		}
		start = isSpace(r) || strings.ContainsRune("-([{<", r)
	}
	return b.String()
}

func filterTrim(m *machine, v Value, a args) Value {
	p := m.take("trim", a, "chars")
	return m.strip(m.str(v), p[0], true, true)
}

func filterTruncate(m *machine, v Value, a args) Value {
	p := m.take("truncate", a, "length", "killwords", "end", "leeway")
	end := "..."
	if p[2] != nil {
		end = m.str(p[2])
	}
	n, leeway := m.int("truncate", p[0], 255), m.int("truncate", p[3], 5)
	size := int64(m.length(v))
	if size <= n+leeway {
		return v
	}
	s, ok := bare(v).(string)
	if !ok {
		m.fail("truncate of %s, wanted a string", m.describe(v))
	}
	m.spend(len(s) + len(end))
	cut := runesFrom(s, 0, int(max(0, min(size, n-int64(m.length(end))))))
	if i := strings.LastIndexByte(cut, ' '); i >= 0 && !m.truth(p[1]) {
		cut = cut[:i]
	}
	return cut + end
}

func filterWordcount(m *machine, v Value, a args) Value {
	s := m.str(v)
	m.spend(m.mul(16, len(s)))
	return int64(len(strings.FieldsFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })))
}

func filterToJSON(m *machine, v Value, a args) Value {
	p := m.take("tojson", a, "ensure_ascii", "indent", "separators", "sort_keys")
	st := &jsonStyle{item: ", ", key: ": ", ascii: m.truth(p[0]), sort: m.truth(p[3])}
	if p[1] != nil {
		st.newlines, st.item = true, ","
		if s, ok := bare(p[1]).(string); ok {
			st.indent = s
		} else {
			st.indent = m.repeat(" ", m.int("tojson", p[1], 0))
		}
	}
	if p[2] != nil {
		seps := m.unpack(p[2], 2)
		st.item, st.key = m.str(seps[0]), m.str(seps[1])
	}
	b := &buffer{m: m}
	m.writeJSON(b, v, st, 0)
	return b.b.String()
}

func filterFromJSON(m *machine, v Value, a args) Value {
	s := m.str(v)
	m.spend(m.mul(64, len(s)))
	x, err := decodeJSON(s)
	if err != nil {
		m.fail("from_json: %v", err)
	}
	return x
}

// need fails where arguments are lacking that have no default.
func need(m *machine, f string, a args, names ...string) {
	for _, name := range names[min(len(a.pos), len(names)):] {
		if !slices.Contains(a.names, name) {
			m.fail("%s lacks its argument %q", f, name)
		}
	}
}

// int takes an integer argument, or its default for none.
func (m *machine) int(f string, v Value, def int64) int64 {
	if v == nil {
		return def
	}
	n, ok := number(v).(int64)
	if !ok {
		m.fail("%s: found %s, wanted an integer", f, m.describe(v))
	}
	return n
}
