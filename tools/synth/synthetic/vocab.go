package synthetic

// The vocabulary is byte-level BPE: token b is the byte b, so that any text encodes;
// then come the results of a few merges, then made-up words, then special tokens.

// merges are applied in this order; each makes a token.
var merges = [][2]string{{"Ġ", "t"}, {"h", "e"}, {"Ġt", "he"}, {"i", "n"}, {"a", "n"}, {"an", "d"}}

var specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

var minVocab = 256 + len(merges) + len(specials)

const (
	tokenNormal  int32 = 1
	tokenControl int32 = 3
)

// byteRunes is the alphabet of byte-level BPE: printable Latin-1 stands for itself, every
// other byte for the next rune from U+0100.
func byteRunes() [256]rune {
	var a [256]rune
	next := rune(256)
	for b := range a {
		r := rune(b)
		if r < 33 || r == 127 || (r > 127 && r < 161) || r == 173 {
			r, next = next, next+1
		}
		a[b] = r
	}
	return a
}

func vocabulary(size int) (tokens []string, types []int32) {
	tokens = make([]string, 0, size)
	for _, r := range byteRunes() {
		tokens = append(tokens, string(r))
	}
	for _, m := range merges {
		tokens = append(tokens, m[0]+m[1])
	}
	for i := 0; len(tokens) < size-len(specials); i++ {
		tokens = append(tokens, "Ġ"+word(i))
	}
	tokens = append(tokens, specials...)
	types = make([]int32, size)
	for i := range types {
		types[i] = tokenNormal
		if i >= size-len(specials) {
			types[i] = tokenControl
		}
	}
	return tokens, types
}

// word is a made-up word of two or more syllables, another for every i.
func word(i int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	w := ""
	for n := i + len(consonants)*len(vowels); n > 0; {
		n-- // digits without a zero, so that no two numbers share a word
		s := n % (len(consonants) * len(vowels))
		w = consonants[s/len(vowels):][:1] + vowels[s%len(vowels):][:1] + w
		n /= len(consonants) * len(vowels)
	}
	return w
}

// chatTemplate is ChatML, the simplest that models in the field use.
const chatTemplate = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
