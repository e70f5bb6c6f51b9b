package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"leat/engine"
	"leat/engine/token"
)

func init() { commands = append(commands, newEmbedCmd) }

type embedFlags struct {
	modelFlags
	texts   []textSource
	pooling string
	keep    bool
	raw     bool
}

// textSource is a text on the command line, or the name of a file with one.
type textSource struct {
	text   string
	inFile bool
}

// textList is a flag that adds a text to a list, each time that it is given.
type textList struct {
	to     *[]textSource
	inFile bool
}

func (l textList) String() string { return "" }
func (l textList) Type() string   { return map[bool]string{false: "text", true: "file"}[l.inFile] }
func (l textList) Set(text string) error {
	*l.to = append(*l.to, textSource{text, l.inFile})
	return nil
}

func newEmbedCmd(a *app) *cobra.Command {
	f := &embedFlags{}
	cmd := &cobra.Command{
		Use:   "embed MODEL (-p TEXT | -f FILE)...",
		Short: "Make a vector of each text",
		Long: `Make a vector of each text: texts of like meaning have vectors that point the same
way. MODEL is an encoder, such as BERT, or any other model that was trained for it.

-p and -f may be given many times, in any order: each is one text. Short texts share
steps, and no text sees another. The tokens that the model's file asks for, such as
[CLS] and [SEP], are put round each text. A text that is longer than the model can
read is refused.

The model's file says how to make one vector of a text's tokens: their mean, or the
first (cls) or last one's vector. --pooling chooses another way; none gives a vector
of each token. Vectors have the length 1, so that their dot product is the cosine of
the angle between them; --no-normalise leaves them as they are.

stdout gets JSON in one line: {"model", "pooling", "normalised", "width", "data"}. data has for each
text, in order, {"index", "tokens", "embedding"}. --raw writes the numbers alone, as
little-endian float32, one vector after the other.`,
		Example: `  leat embed model.gguf -p "a cat sat on the mat" -p "a kitten lay on the rug"
  leat embed model.gguf -f question.txt -f answer.txt --raw > vectors.f32
  leat embed demo -p "Once upon a time" --pooling mean`,
		Args: wants("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args[0]) },
	}
	f.register(cmd.Flags())
	fs := cmd.Flags()
	fs.VarP(textList{&f.texts, false}, "prompt", "p", "a text")
	fs.VarP(textList{&f.texts, true}, "file", "f", "a file with a text; - is stdin")
	fs.StringVar(&f.pooling, "pooling", "", "how to make one vector of a text: mean, cls, last or none (default: as the model's file says)")
	fs.BoolVar(&f.keep, "no-normalise", false, "leave the vectors as long as they are")
	fs.BoolVar(&f.raw, "raw", false, "print little-endian float32 instead of JSON")
	return cmd
}

// embeddings is what leat embed prints.
type embeddings struct {
	Model      string      `json:"model"`
	Pooling    string      `json:"pooling"`
	Normalised bool        `json:"normalised"`
	Width      int         `json:"width"`
	Data       []embedding `json:"data"`
}

// embedding is a text's vector; with pooling none it is a list of its tokens' vectors.
type embedding struct {
	Index     int `json:"index"`
	Tokens    int `json:"tokens"`
	Embedding any `json:"embedding"`
}

func (f *embedFlags) run(ctx context.Context, a *app, arg string) error {
	if err := modelExists(arg); err != nil {
		return err
	}
	if err := f.checkPooling(); err != nil {
		return err
	}
	texts, err := f.read(a)
	if err != nil {
		return err
	}
	if f.raw && isTerminal(a.out) {
		return usageErrorf("--raw: stdout is a terminal, and these bytes are no text: redirect stdout")
	}
	m, err := f.load(ctx, a, arg)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := tokenizerNeeded(m); err != nil {
		return err
	}
	ids := make([][]token.ID, len(texts))
	for i, text := range texts {
		ids[i] = m.Tokenizer().Encode(text, true, false)
	}
	o := engine.EmbedOptions{Pooling: f.choosePooling(a, m, arg), Unscaled: f.keep}
	vectors, err := m.Embed(ctx, ids, o)
	if err != nil {
		return err
	}
	if f.raw {
		return writeVectors(a.out, vectors)
	}
	return json.NewEncoder(a.out).Encode(f.report(arg, o, ids, vectors, m.Info().EmbeddingLength))
}

// checkPooling fails before a model is loaded for a pooling that there isn't.
func (f *embedFlags) checkPooling() error {
	switch engine.Pooling(f.pooling) {
	case "", engine.PoolingMean, engine.PoolingFirst, engine.PoolingLast, engine.PoolingNone:
		return nil
	}
	return usageErrorf("--pooling: found %q, wanted mean, cls, last or none", f.pooling)
}

// choosePooling is what --pooling or the model's file says. Where an encoder's file says nothing it is the mean, with a warning.
func (f *embedFlags) choosePooling(a *app, m *engine.Model, arg string) engine.Pooling {
	info := m.Info()
	switch {
	case f.pooling != "":
		return engine.Pooling(f.pooling)
	case info.Pooling == "" && info.Encoder:
		a.log.Warn("the file does not say how to make one vector of a text: taking the mean, as is usual; --pooling chooses", "model", arg)
		return engine.PoolingMean
	}
	return info.Pooling
}

// read reads all texts. Stdin can be read once.
func (f *embedFlags) read(a *app) (texts []string, err error) {
	if len(f.texts) == 0 {
		return nil, usageErrorf("no text: give it with -p TEXT, or -f FILE (-f - reads stdin)")
	}
	stdin := false
	for _, t := range f.texts {
		if t.inFile && t.text == "-" {
			if stdin {
				return nil, usageErrorf("-f -: stdin can be read once only")
			}
			stdin = true
		}
		text := t.text
		if t.inFile {
			if text, err = readText(a, "", t.text); err != nil {
				return nil, err
			}
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// writeVectors writes vectors as little-endian float32.
func writeVectors(w io.Writer, vectors [][]float32) error {
	for _, v := range vectors {
		if _, err := w.Write(appendFloats(nil, v)); err != nil {
			return fmt.Errorf("write vectors: %w", err)
		}
	}
	return nil
}

// report is what is printed of vectors; of those of tokens, width is the width.
func (f *embedFlags) report(arg string, o engine.EmbedOptions, ids [][]token.ID, vectors [][]float32, width int) embeddings {
	r := embeddings{Model: arg, Pooling: string(o.Pooling), Normalised: !o.Unscaled, Width: width}
	for i, v := range vectors {
		e := embedding{Index: i, Tokens: len(ids[i]), Embedding: v}
		if o.Pooling != engine.PoolingNone {
			r.Width = len(v)
		} else {
			rows := make([][]float32, len(ids[i]))
			for k := range rows {
				rows[k] = v[k*width:][:width]
			}
			e.Embedding = rows
		}
		r.Data = append(r.Data, e)
	}
	return r
}
