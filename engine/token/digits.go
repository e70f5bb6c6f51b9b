package token

import "unicode"

// A runeCut cuts a text into words, where no linear pattern can: patterns cut these further.
type runeCut func(runes []rune, yield func(word []rune))

// threesBefore cuts numbers into threes from the right, 1234567 into 1, 234 and 567. A run of digits is left alone where what
// comes after it doesn't end a number.
func threesBefore(digit *unicode.RangeTable, ends func(next rune) bool) runeCut {
	return func(runes []rune, yield func([]rune)) {
		done := 0
		for i := 0; i < len(runes); i++ {
			start := i
			for i < len(runes) && unicode.Is(digit, runes[i]) {
				i++
			}
			if start == i || i < len(runes) && !ends(runes[i]) {
				continue
			}
			if done < start {
				yield(runes[done:start])
			}
			for n := (i-start-1)%3 + 1; start < i; start, n = start+n, 3 {
				yield(runes[start : start+n])
			}
			done = i
		}
		if done < len(runes) {
			yield(runes[done:])
		}
	}
}

func anyRune(rune) bool { return true }

// noWord is \W as Oniguruma has it: of the signs that are numbers but no digits, those of Latin-1 are parts of words.
func noWord(r rune) bool {
	return (r > unicode.MaxLatin1 || !unicode.Is(unicode.No, r)) &&
		!unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}

// numbersInThrees puts runs of \p{N} apart, and cuts them before each multiple of three decimal digits, counted from the last one.
func numbersInThrees(runes []rune, yield func([]rune)) {
	for start := 0; start < len(runes); {
		end := start + 1
		for end < len(runes) && unicode.Is(unicode.N, runes[start]) == unicode.Is(unicode.N, runes[end]) {
			end++
		}
		done, digits := start, 0 // of the decimal digits from i on, how many follow each other
		for i := start; i < end; i++ {
			if digits == 0 {
				for j := i; j < end && unicode.Is(unicode.Nd, runes[j]); j++ {
					digits++
				}
			}
			if digits > 0 {
				if digits%3 == 0 && done < i {
					yield(runes[done:i])
					done = i
				}
				digits--
			}
		}
		yield(runes[done:end])
		start = end
	}
}
