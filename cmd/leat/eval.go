package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"leat/engine"
	"leat/engine/sample"
	"leat/engine/token"
)

func init() { commands = append(commands, newEvalCmd) }

type evalFlags struct {
	modelFlags
	tokens string
	logits string
	json   bool
}

func newEvalCmd(a *app) *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval MODEL --tokens IDS",
		Short: "Run token ids through a model and write the logits",
		Long: `Run token ids through a model. With --logits the logits after every token are
written as little-endian float32, one row of vocabulary size for each token.
stdout gets the most likely next token after each.

An encoder, such as BERT, has no logits: --logits writes its last hidden states, one
row of embedding_length numbers for each token, and stdout gets how many there are.

A FILE that is - is stdout; the tokens go to stderr then. A file that is there is replaced
once the new one is whole; pipes and devices are written to.

The logits are equal to the bit with every --vram, --ram and --chunk, on one device and
driver. --disable int8,coopmat computes in float32, which is slower and nearer to the
model's own logits: by default products are computed in bytes and halves.`,
		Example: `  leat eval model.gguf --tokens 1,333,470 --logits out.f32
  leat eval model.gguf --tokens "$(leat tokenize model.gguf -p 'Once upon' --ids)" --kv-type f32`,
		Args: wants("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args[0]) },
	}
	f.register(cmd.Flags())
	f.registerRouting(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&f.tokens, "tokens", "", "token ids, separated by commas or spaces")
	fs.StringVar(&f.logits, "logits", "", "write the logits to this file; - is stdout")
	fs.BoolVar(&f.json, "json", false, "print as JSON")
	return cmd
}

func parseIDs(text string) ([]token.ID, error) {
	var ids []token.ID
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		n, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return nil, usageErrorf("--tokens: %q is not a token id", field)
		}
		ids = append(ids, token.ID(n))
	}
	if len(ids) == 0 {
		return nil, usageErrorf("--tokens: give at least one id, as --tokens 1,2,3")
	}
	return ids, nil
}

func (f *evalFlags) run(ctx context.Context, a *app, arg string) error {
	if err := modelExists(arg); err != nil {
		return err
	}
	ids, err := parseIDs(f.tokens)
	if err != nil {
		return err
	}
	if err := f.asks(a, arg, nil, result{"logits", f.logits, true}); err != nil {
		return err
	}
	m, err := f.load(ctx, a, arg)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Info().Encoder {
		return f.encode(ctx, a, m, ids)
	}
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	var best []token.ID
	err = f.write(func(w io.Writer) error {
		best, err = evaluate(ctx, s, ids, w)
		return err
	})
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(map[string]any{"tokens": ids, "next": best, "vocab": m.Info().VocabSize})
	}
	for i, id := range best {
		sep := " "
		if i == len(best)-1 {
			sep = "\n"
		}
		fmt.Fprint(a.out, id, sep)
	}
	return nil
}

// write calls rows to write what --logits names; without the flag the rows go nowhere.
func (f *evalFlags) write(rows func(io.Writer) error) error {
	if f.logits == "" {
		return rows(io.Discard)
	}
	return f.results.fill(f.logits, rows)
}

// encode writes the last hidden states of an encoder.
func (f *evalFlags) encode(ctx context.Context, a *app, m *engine.Model, ids []token.ID) error {
	width := m.Info().EmbeddingLength
	err := f.write(func(w io.Writer) error {
		hidden, err := m.Embed(ctx, [][]token.ID{ids}, engine.EmbedOptions{Pooling: engine.PoolingNone, Unscaled: true})
		if err != nil {
			return err
		}
		_, err = w.Write(appendFloats(nil, hidden[0]))
		return err
	})
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(map[string]any{"tokens": ids, "width": width})
	}
	fmt.Fprintf(a.out, "%d hidden %s of %d numbers\n", len(ids), plural(len(ids), "state"), width)
	return nil
}

// appendFloats appends numbers to b as little-endian float32.
func appendFloats(b []byte, numbers []float32) []byte {
	for _, v := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// evaluate writes every row of logits to w and returns the most likely next ids.
func evaluate(ctx context.Context, s *engine.Session, ids []token.ID, w io.Writer) (best []token.ID, err error) {
	var row []byte
	for logits, err := range s.Logits(ctx, ids) {
		if err != nil {
			return nil, err
		}
		row = appendFloats(row[:0], logits)
		if _, err := w.Write(row); err != nil {
			return nil, err
		}
		best = append(best, token.ID(sample.Argmax(logits)))
	}
	return best, nil
}
