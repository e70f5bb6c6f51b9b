package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// numberSpec says how a value is written: Python's [[fill]align][sign][#][0][width][,_][.precision][type].
type numberSpec struct {
	fill      string
	align     byte // < > ^, or = for between sign and digits; 0: as the value's type has it
	sign      byte // + or space for what is not negative; 0: neither
	alternate bool // 0x before digits
	width     int
	group     byte // , or _ between groups of digits; 0: none
	prec      int  // -1: none
	least     int  // digits of an integer
	conv      byte // 0: as the value's type has it
}

// parseSpec reads what stands after a colon in str.format.
func (f *formatter) parseSpec(s string) numberSpec {
	sp := numberSpec{fill: " ", prec: -1}
	_, size := utf8.DecodeRuneInString(s)
	switch {
	case len(s) > size && strings.IndexByte("<>^=", s[size]) >= 0:
		sp.fill, sp.align, s = s[:size], s[size], s[size+1:]
	case s != "" && strings.IndexByte("<>^=", s[0]) >= 0:
		sp.align, s = s[0], s[1:]
	}
	take := func(set string) (c byte) {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c, s = s[0], s[1:]
		}
		return c
	}
	number := func() string {
		n := len(s) - len(strings.TrimLeft(s, "0123456789"))
		digits := s[:n]
		s = s[n:]
		return digits
	}
	sp.sign = take("+- ")
	sp.alternate = take("#") != 0
	if take("0") != 0 && sp.align == 0 {
		sp.fill, sp.align = "0", '='
	}
	sp.width = f.digits(number(), 0)
	sp.group = take(",_")
	if take(".") != 0 {
		sp.prec = f.digits(number(), -1)
	}
	sp.conv = take("sdfFeEgGxXobcn%")
	if s != "" {
		f.m.fail("format: %q is not supported", s)
	}
	return sp
}

// formatted is format(v, spec).
func (f *formatter) formatted(spec string, v Value) string {
	if spec == "" {
		return f.m.str(v)
	}
	sp := f.parseSpec(spec)
	s, ok := bare(v).(string)
	if !ok {
		return f.number(&sp, v)
	}
	if sp.conv != 0 && sp.conv != 's' || sp.sign != 0 || sp.group != 0 || sp.alternate || sp.align == '=' && sp.fill != "0" {
		f.m.fail("format: %q is not for a string", spec)
	}
	if sp.align == 0 || sp.align == '=' {
		sp.align = '<'
	}
	return f.pad(&sp, "", f.clip(s, sp.prec))
}

// clip is the first n runes of s; all where n is negative.
func (f *formatter) clip(s string, n int) string {
	if n < 0 || n >= f.m.length(s) {
		return s
	}
	return runesFrom(s, 0, n)
}

// number writes an integer or a float.
func (f *formatter) number(sp *numberSpec, v Value) string {
	if sp.align == 0 {
		sp.align = '>'
	}
	n, isInt := number(v).(int64)
	x, isFloat := float(v)
	switch {
	case isInt && (sp.conv == 0 || strings.IndexByte("dbxXon", sp.conv) >= 0):
		return f.integer(sp, n)
	case isInt && sp.conv == 'c' && 0 <= n && n <= utf8.MaxRune:
		return f.pad(sp, "", string(rune(n)))
	case isFloat && (sp.conv == 0 || strings.IndexByte("fFeEgGn%", sp.conv) >= 0):
		return f.decimal(sp, x)
	}
	f.m.fail("format: %s can't be written as %q", f.m.describe(v), max(sp.conv, ' '))
	return ""
}

func (f *formatter) integer(sp *numberSpec, n int64) string {
	base, size, prefix := 10, 3, ""
	switch sp.conv {
	case 'b':
		base, size, prefix = 2, 4, "0b"
	case 'o':
		base, size, prefix = 8, 4, "0o"
	case 'x', 'X':
		base, size, prefix = 16, 4, "0"+string(rune(sp.conv))
	}
	if sp.prec >= 0 {
		f.m.fail("format: an integer has no precision")
	}
	digits := strings.TrimPrefix(strconv.FormatInt(n, base), "-")
	if sp.conv == 'X' {
		digits = strings.ToUpper(digits)
	}
	digits = f.m.repeat("0", int64(sp.least-len(digits))) + digits
	sign := sp.signOf(n < 0)
	if sp.alternate {
		sign += prefix
	}
	return f.pad(sp, sign, f.grouped(sp, sign, digits, "", size))
}

func (f *formatter) decimal(sp *numberSpec, x float64) string {
	prec, conv, end := sp.prec, sp.conv, ""
	f.m.spend(max(prec, 0) + 400)
	abs, sign := math.Abs(x), sp.signOf(math.Signbit(x))
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return f.pad(sp, sign, floatText(abs, "inf", "nan"))
	case conv == 0 && prec < 0:
		return f.pad(sp, sign, f.groupedDecimal(sp, sign, floatText(abs, "inf", "nan")))
	case conv == '%':
		abs, conv, end = abs*100, 'f', "%"
	case conv == 0 || conv == 'n':
		conv = 'g'
	}
	if prec < 0 {
		prec = 6
	}
	if conv|0x20 == 'g' {
		prec = max(prec, 1)
	}
	digits := strconv.FormatFloat(abs, conv|0x20, prec, 64)
	if sp.conv == 0 && !strings.ContainsAny(digits, ".e") {
		digits += ".0"
	}
	if conv < 'a' {
		digits = strings.ToUpper(digits)
	}
	return f.pad(sp, sign, f.groupedDecimal(sp, sign, digits+end))
}

func (sp *numberSpec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case sp.sign == '+' || sp.sign == ' ':
		return string(rune(sp.sign))
	}
	return ""
}

// grouped puts marks between groups of digits; zeros that fill the width are digits, too. after follows the digits.
func (f *formatter) grouped(sp *numberSpec, sign, digits, after string, size int) string {
	if sp.group == 0 {
		return digits + after
	}
	if sp.align == '=' && sp.fill == "0" {
		n := len(digits)
		for len(sign)+n+(n-1)/size+len(after) < sp.width {
			n++
		}
		digits = f.m.repeat("0", int64(n-len(digits))) + digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(sp.group)
		}
		b.WriteByte(digits[i])
	}
	return b.String() + after
}

func (f *formatter) groupedDecimal(sp *numberSpec, sign, digits string) string {
	end := strings.IndexAny(digits, ".eE%")
	if end < 0 {
		end = len(digits)
	}
	return f.grouped(sp, sign, digits[:end], digits[end:], 3)
}

// pad brings a sign and what follows it to the width.
func (f *formatter) pad(sp *numberSpec, sign, s string) string {
	n := max(0, sp.width-f.m.length(sign)-f.m.length(s))
	if sp.align == '=' {
		return sign + f.m.repeat(sp.fill, int64(n)) + s
	}
	before := map[byte]int{'<': 0, '>': n, '^': n / 2}[sp.align]
	return f.m.repeat(sp.fill, int64(before)) + sign + s + f.m.repeat(sp.fill, int64(n-before))
}
