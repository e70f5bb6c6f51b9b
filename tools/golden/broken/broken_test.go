package broken_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/engine/chat"
	"leat/engine/token"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/tools/golden/broken"
	"leat/tools/testdata"
)

// Broken files take their turn: one of LEAT_BROKEN_PARTS is tried, which ones a seed says; nightly tries all.
var (
	parts = testdata.Parts("LEAT_BROKEN_PARTS")
	seed  = rand.Uint64()
)

// TestBroken holds the loading of broken files, up to the device, against what it may do: refuse the file by the name of what is broken, say in a note what it assumes,
// or load it, if the model is the same as that of the whole file.
func TestBroken(t *testing.T) {
	if parts > 1 {
		t.Logf("LEAT_BROKEN_PARTS=%d, seed %d", parts, seed)
	}
	for _, path := range goldens(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".gguf"), func(t *testing.T) {
			whole, cases := casesOf(t, path)
			for i := range cases {
				c := &cases[i]
				if !inTurn(t.Name(), c) {
					continue
				}
				got := load(c.File())
				if err := judge(c, whole, got); err != nil && !slices.Contains(open, filepath.Base(t.Name())+": "+c.String()) {
					t.Errorf("%s: %v", c, err)
				}
			}
		})
	}
}

// open lists what is still to be mended: broken files that load as another model without a note, or are refused without the name of what is broken. It may only
// get shorter.
var open = []string{
	"nemotron-h-moe: tensor is missing blk.0.ssm_conv1d.bias", // of the only layer of its kind
}

// casesOf lists the broken files of the model at path. whole is what loading makes of the file that isn't broken.
func casesOf(t *testing.T, path string) (whole loaded, cases []broken.Case) {
	t.Helper()
	g, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole = load(bytes.NewReader(b))
	if errors.Is(whole.err, errors.ErrUnsupported) { // so far
		t.Skip(whole.err)
	}
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	if cases, err = broken.Cases(g); err != nil {
		t.Fatal(err)
	}
	return whole, cases
}

// inTurn reports whether the case c of a model is tried in this run.
func inTurn(model string, c *broken.Case) bool {
	h := fnv.New64a()
	fmt.Fprint(h, seed, model, c)
	return h.Sum64()%uint64(parts) == 0
}

// goldens lists the paths of small models of all architectures.
func goldens(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{filepath.Join(testdata.Dir(t), "hf", "*.gguf"), filepath.Join(testdata.Root(t), "engine", "testdata", "transformers", "*.gguf"),
		filepath.Join(testdata.Root(t), "engine", "testdata", "*-nano.gguf")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 60 {
		t.Fatalf("found %d models", len(paths))
	}
	return paths
}

// sized is a file.
type sized interface {
	io.ReaderAt
	Size() int64
}

// loaded is what loading makes of a file, without a device.
type loaded struct {
	err   error
	bytes uint64   // that were allocated
	names []string // keys and tensors of the file

	architecture string
	notes        []string

	model []any // what the answers depend on
}

// load loads a GGUF file as the engine does, up to the device.
func load(b sized) (l loaded) {
	before := allocated()
	defer func() {
		if p := recover(); p != nil {
			l.err = fmt.Errorf("panic: %v", p)
		}
		l.bytes = allocated() - before
	}()
	f, err := gguf.Parse(b, b.Size())
	if err != nil {
		return loaded{err: err}
	}
	l.names, l.architecture = f.Keys(), f.Architecture()
	for _, t := range f.Tensors {
		l.names = append(l.names, t.Name)
	}
	m, err := pack.Of(f, "F")
	if err != nil {
		return loaded{err: err}
	}
	l.err = l.read(m)
	return l
}

// read reads the model.
func (l *loaded) read(m *pack.Model) error {
	h, err := arch.Read(m)
	if err != nil {
		return err
	}
	l.notes = h.Notes
	h.Notes = nil
	whole := *h
	for i := range h.Ropes { // what rope does, not what it was computed from
		freqs, scale := h.Ropes[i].Freqs(64), h.Ropes[i]
		l.model = append(l.model, freqs, scale, h.Ropes[i].Neox)
	}
	whole.Ropes = nil
	whole.TokenTypes = 0 // the first row alone is read
	input := h.Input(m.Has)
	for i := range input {
		if input[i].Weight == "token_types.weight" {
			input[i].Rows = 1
		}
	}
	l.model = append(l.model, whole, input, h.Output(m.Has), h.LogitOps(m.Has))
	for i := range h.Layers {
		l.model = append(l.model, h.Layer(i, m.Has))
	}
	tok, err := token.New(m.Metadata)
	if err != nil && !token.Missing(err) {
		return err
	}
	if err != nil {
		l.notes = append(l.notes, err.Error()) // the engine refuses text by this error
	} else if err := l.readText(m.Metadata, tok); err != nil {
		return err
	}
	_, err = plan.Make(h, m, plan.Budget{DeviceBytes: 1 << 30, HostBytes: 1 << 28, ContextLength: min(64, h.ContextLength)})
	return err
}

// readText reads what turns text into tokens.
func (l *loaded) readText(md *gguf.Metadata, tok *token.Tokenizer) error {
	l.notes = append(l.notes, tok.Notes()...)
	var eog []token.ID
	var texts []string
	for id := range token.ID(tok.Size()) {
		texts = append(texts, string(tok.Piece(id)))
		if tok.IsEOG(id) {
			eog = append(eog, id)
		}
	}
	const text = "<s>Hello, wörld! 1234 \n\n  it's</s> <|im_end|>"
	l.model = append(l.model, texts, eog, tok.Encode(text, true, true), tok.Encode(text, false, false))
	const key = "tokenizer.chat_template"
	v, found := md.Get(key)
	source, ok := v.(string)
	if found && !ok {
		return fmt.Errorf("read %s: not a string", key) // as engine/text.go
	}
	if _, err := chat.New(source, chat.Vocabulary{}); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	l.model = append(l.model, source)
	return nil
}

// maxBytes is the most that loading a small file may allocate.
const maxBytes = 256 << 20

// unknowable reports whether a file without a tensor or key is one of another model of its architecture, which nothing tells from the whole file.
func unknowable(architecture, tensor string) bool {
	if tensor == "tokenizer.ggml.add_bos_token" { // many files leave it to the kind of their vocabulary
		return true
	}
	switch architecture {
	case "llama": // the first models have no factors, nor do all of those with YaRN
		return tensor == arch.Output || tensor == arch.RopeFreqs || tensor == "llama.rope.scaling.yarn_attn_factor"
	case "phi3": // Phi-3-mini has it, Phi-4-mini does not
		return tensor == arch.Output || tensor == "phi3.rope.scaling.attn_factor"
	case "gemma4": // in layers that see all positions, keys may be the values; logits may have no bound
		return tensor == arch.Output || tensor == "gemma4.final_logit_softcapping" || strings.HasSuffix(tensor, ".attn_v.weight")
	}
	return tensor == arch.Output // logits may be products with the embeddings
}

// judge says what is wrong with what loading made of the broken file c; whole is what it makes of the file that isn't broken.
func judge(c *broken.Case, whole, got loaded) error {
	switch {
	case got.err != nil && strings.HasPrefix(got.err.Error(), "panic: "):
		return got.err
	case got.bytes > maxBytes:
		return fmt.Errorf("allocates %d MiB", got.bytes>>20)
	case c.Value || c.Target == "" && got.err != nil:
		return nil
	case c.Target == "":
		return errors.New("loads")
	case got.err != nil:
		if !names(got.err.Error(), append(whole.names, c.Target)) {
			return fmt.Errorf("no name in the error: %w", got.err)
		}
		return nil
	case reflect.DeepEqual(whole.model, got.model):
		return nil
	}
	noted := slices.ContainsFunc(got.notes, func(note string) bool { return strings.Contains(note, c.Target) })
	if !noted && !(strings.HasSuffix(c.Kind, "is missing") && unknowable(whole.architecture, c.Target)) {
		return errors.New("loads as another model without a note")
	}
	return nil
}

// names reports whether a text has one of the names.
func names(text string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(text, name) })
}

// allocated is the number of bytes that were ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
