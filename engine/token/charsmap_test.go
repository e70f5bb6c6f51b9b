package token

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
)

const charsmapKey = "tokenizer.ggml.precompiled_charsmap"

// charsmapOf writes replacements as SentencePiece would.
func charsmapOf(replacements map[string]string) []byte {
	b := charsmapBuilder{taken: map[uint32]bool{0: true}, bases: map[uint32]bool{}}
	b.node(0, slices.Sorted(maps.Keys(replacements)), 0, replacements)
	raw := binary.LittleEndian.AppendUint32(nil, uint32(4*len(b.units)))
	for _, unit := range b.units {
		raw = binary.LittleEndian.AppendUint32(raw, unit)
	}
	return append(raw, b.texts...)
}

type charsmapBuilder struct {
	units        []uint32
	texts        []byte
	taken, bases map[uint32]bool
}

// node places the children of a node, which stands for the first depth bytes of all the keys.
func (b *charsmapBuilder) node(place uint32, keys []string, depth int, replacements map[string]string) {
	byLabel := map[byte][]string{} // 0 for the leaf
	for _, key := range keys {
		label := byte(0)
		if len(key) > depth {
			label = key[depth]
		}
		byLabel[label] = append(byLabel[label], key)
	}
	base := uint32(1)
	for fits := false; !fits; base++ {
		fits = !b.bases[base]
		for label := range byLabel {
			fits = fits && !b.taken[base^uint32(label)]
		}
		if fits {
			break
		}
	}
	b.bases[base] = true
	if offset := place ^ base; offset&0xff == 0 {
		b.set(place, offset>>8<<10|wideUnit)
	} else {
		b.set(place, offset<<10)
	}
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		b.taken[base^uint32(label)] = true
	}
	for label, keys := range byLabel {
		if label != 0 {
			b.set(base^uint32(label), uint32(label))
			b.node(base^uint32(label), keys, depth+1, replacements)
			continue
		}
		b.set(place, 1<<8)
		b.set(base, leafUnit|uint32(len(b.texts)))
		b.texts = append(append(b.texts, replacements[keys[0]]...), 0)
	}
}

func (b *charsmapBuilder) set(place, bits uint32) {
	for int(place) >= len(b.units) {
		b.units = append(b.units, 0)
	}
	b.units[place] |= bits
}

func charsmapMetadata(t testing.TB, raw any) *gguf.Metadata {
	t.Helper()
	md := gguf.NewMetadata()
	if err := md.Set(charsmapKey, raw); err != nil {
		t.Fatal(err)
	}
	return md
}

var someReplacements = map[string]string{"ﬁ": "fi", "Ａ": "A", "\t": " ", "\u00ad": "", "e\u0301": "é", "e": "e", "½": "1⁄2", "カ\u3099": "ガ", "\u3000": " ", "ab": "ba", "abcd": "x"}

// TestCharsmap: the longest spelling is replaced, by what a walk over all of them finds.
func TestCharsmap(t *testing.T) {
	raw := charsmapOf(someReplacements)
	signed := make([]int8, len(raw))
	for i, b := range raw {
		signed[i] = int8(b)
	}
	for _, md := range []*gguf.Metadata{charsmapMetadata(t, raw), charsmapMetadata(t, signed)} {
		c, err := readCharsmap(md)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"", "ﬁne ＡＢ", "e\u0301e", "abcd abc ab a", "a\u00ad\tb\x00", "\xffé\xe2\x96", "カ\u3099カ½\u3000\ufffd"} {
			var got, want strings.Builder
			for rest := text; rest != ""; {
				replacement, size := c.next(rest)
				got.WriteString(replacement)
				rest = rest[size:]
			}
			for rest := text; rest != ""; {
				longest := ""
				for spelling := range someReplacements {
					if strings.HasPrefix(rest, spelling) && len(spelling) > len(longest) {
						longest = spelling
					}
				}
				if longest != "" {
					want.WriteString(someReplacements[longest])
					rest = rest[len(longest):]
					continue
				}
				r := []rune(rest)[0]
				want.WriteRune(r)
				rest = rest[max(1, len(rest)-len(strings.TrimPrefix(rest, string(r)))):]
			}
			if got.String() != want.String() {
				t.Errorf("%q became %q, want %q", text, got.String(), want.String())
			}
		}
	}
}

// TestCharsmapHostile: what a text could trip over is refused as the file is read.
func TestCharsmapHostile(t *testing.T) {
	good := charsmapOf(someReplacements)
	change := func(off int, b byte) []byte {
		raw := slices.Clone(good)
		raw[off] = b
		return raw
	}
	leaf := charsmapOf(map[string]string{"a": "b"})
	for off := 4; off < len(leaf)-2; off += 4 {
		if unit := leaf[off:]; unit[3]&0x80 != 0 {
			unit[0] = 200
		}
	}
	for name, raw := range map[string][]byte{
		"too short": {1, 2}, "no trie": {0, 0, 0, 0, 0}, "size past the end": change(3, 0x7f), "size not of words": change(0, good[0]+1),
		"texts without an end": change(len(good)-1, 'x'), "no texts": good[:4], "a replacement past the end": leaf,
	} {
		if _, err := readCharsmap(charsmapMetadata(t, raw)); !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), charsmapKey) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

// FuzzCharsmap: no table of replacements panics or has a text never end.
func FuzzCharsmap(f *testing.F) {
	good := charsmapOf(someReplacements)
	f.Add(good, "ﬁ abcd e\u0301 \xff")
	f.Add([]byte{4, 0, 0, 0, 1, 4, 0, 0, 0}, "\x01\x01\x01")         // leads back to itself
	f.Add(append([]byte{8, 0, 0, 0}, good[4:]...), "ﬁ abcd e\u0301") // cut off
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		md := gguf.NewMetadata()
		if err := md.Set(charsmapKey, raw); err != nil {
			t.Fatal(err)
		}
		c, err := readCharsmap(md)
		if err != nil {
			if !errors.Is(err, gguf.ErrFormat) {
				t.Errorf("err = %v, want gguf.ErrFormat", err)
			}
			return
		}
		for text != "" {
			_, size := c.next(text)
			if size < 1 || size > len(text) {
				t.Fatalf("took %d bytes of %q", size, text)
			}
			text = text[size:]
		}
	})
}
