package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"leat/decompose/pack"
	"leat/engine/token"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/plan"
)

func init() { commands = append(commands, newShowCmd) }

// showFlags are the flags of leat show.
type showFlags struct {
	modelMemory
	metadata, tensors, template, json bool
}

const showLong = `Show what a model's file holds and whether leat runs it, without loading it: its architecture,
the types of its weights, its tokenizer and chat template, and whether it fits here. It takes
a file of any size, any GGUF, also one that leat does not run, and needs no GPU.

--metadata lists all keys, --tensors all tensors, --template prints the chat template as it
is. --json prints all of it.

Exit status: 0 the file can be read, whether leat runs it or not; 1 it can't be read, or it
has no template to print; 2 the command line is wrong.`

func newShowCmd(a *app) *cobra.Command {
	f := &showFlags{}
	cmd := &cobra.Command{
		Use:   "show MODEL",
		Short: "Show what a model's file holds, and whether it runs and fits here",
		Long:  showLong,
		Example: `  leat show demo
  leat show llama-70b-00001-of-00009.gguf --tensors
  leat show llama-70b.gguf --gpu "RTX 4090" --ram 64GiB
  leat show llama-70b.gguf --template > template.jinja`,
		Args: wants("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, _, err := openModel(args[0])
			if err != nil {
				return err
			}
			defer m.Close()
			if f.template {
				return printTemplate(a, m)
			}
			r := describeModel(args[0], m)
			if err := f.judge(a, r, m); err != nil {
				return err
			}
			if f.json {
				r.Metadata, r.Tensors = listMetadata(m.Metadata), listTensors(m)
				return a.printJSON(r)
			}
			r.print(a.out)
			if f.metadata {
				printMetadata(a.out, listMetadata(m.Metadata))
			}
			if f.tensors {
				printTensors(a.out, listTensors(m))
			}
			return nil
		},
	}
	fs := cmd.Flags()
	f.register(fs)
	fs.BoolVar(&f.metadata, "metadata", false, "list all keys of the file")
	fs.BoolVar(&f.tensors, "tensors", false, "list all tensors")
	fs.BoolVar(&f.template, "template", false, "print the chat template and nothing else")
	fs.BoolVar(&f.json, "json", false, "print all of it as JSON")
	cmd.MarkFlagsMutuallyExclusive("template", "json")
	return cmd
}

// templateKey is the key of a file's chat template.
const templateKey = "tokenizer.chat_template"

func printTemplate(a *app, m *pack.Model) error {
	source, ok := m.String(templateKey)
	if !ok {
		return fmt.Errorf("print the chat template of %s: the file has none", m.Path)
	}
	_, err := fmt.Fprint(a.out, source)
	return err
}

// showReport is what leat show prints.
type showReport struct {
	Model        string          `json:"model"` // as the command line names it
	Name         string          `json:"name,omitempty"`
	Files        int             `json:"files"`
	Architecture string          `json:"architecture"`
	Runs         bool            `json:"runs"`
	Lacks        string          `json:"lacks,omitempty"` // why leat does not run it
	Hint         string          `json:"hint,omitempty"`
	Notes        []string        `json:"notes"`
	Shape        shapeReport     `json:"shape"`
	Bytes        int64           `json:"bytes"` // of all weights
	Types        []typeReport    `json:"types"`
	Tokenizer    tokenizerReport `json:"tokenizer"`
	Fit          fitReport       `json:"fit"`
	Metadata     []keyReport     `json:"metadata,omitempty"`
	Tensors      []tensorReport  `json:"tensors,omitempty"`
}

// shapeReport is the sizes of a model, 0 where the file does not say.
type shapeReport struct {
	Layers      int64 `json:"layers"`
	Width       int64 `json:"width"`
	Heads       int64 `json:"heads"`
	KeyHeads    int64 `json:"key_heads"`
	Context     int64 `json:"context"`
	Experts     int64 `json:"experts"`
	ExpertsUsed int64 `json:"experts_used"`
	Vocabulary  int64 `json:"vocabulary"`
}

// tokenizerReport is what the file says of its tokenizer.
type tokenizerReport struct {
	Model  string `json:"model,omitempty"`
	Pre    string `json:"pre,omitempty"`
	Tokens int    `json:"tokens"`
	BOS    *int64 `json:"bos,omitempty"`
	EOS    *int64 `json:"eos,omitempty"`
	Lacks  string `json:"lacks,omitempty"` // why leat does not read it

	TemplateBytes int `json:"template_bytes"`
}

// describeModel gathers what a file holds. It reads no weights, and makes no strings of the vocabulary.
func describeModel(arg string, m *pack.Model) *showReport {
	var sums pack.Manifest
	sums.Summarize(m.Metadata, m.Units)
	r := &showReport{
		Model: arg, Name: sums.Model, Files: len(m.Files), Architecture: m.Architecture(), Notes: []string{},
		Shape: shapeReport{
			Layers: sums.NumLayers, Width: sums.HiddenDim, Heads: sums.NumHeads, KeyHeads: sums.NumKVHeads, Context: sums.MaxContext,
			Experts: sums.NumExperts, ExpertsUsed: sums.NumExpertsUsed, Vocabulary: sums.VocabSize,
		},
	}
	r.Types, r.Bytes = sumTypes(m)
	r.readTokenizer(m)
	h, err := arch.Read(m)
	if r.Runs = err == nil; !r.Runs {
		var hint interface{ Hint() string }
		if r.Lacks = strings.TrimPrefix(err.Error(), "bind "+m.Path+": "); errors.As(err, &hint) {
			r.Hint = hint.Hint()
		}
		return r
	}
	r.Notes = append(r.Notes, h.Notes...)
	kv := plan.CacheType(h, gguf.F16)
	r.Fit.KVBytes, r.Fit.KVType = kvBytes(h, kv), kv.String()
	return r
}

func (r *showReport) readTokenizer(m *pack.Model) {
	t := &r.Tokenizer
	t.Model, _ = m.String("tokenizer.ggml.model")
	t.Pre, _ = m.String("tokenizer.ggml.pre")
	if tokens, ok := m.Elements("tokenizer.ggml.tokens"); ok {
		t.Tokens = tokens.Len
	}
	for key, id := range map[string]**int64{"tokenizer.ggml.bos_token_id": &t.BOS, "tokenizer.ggml.eos_token_id": &t.EOS} {
		if n, ok := m.Int(key); ok {
			*id = &n
		}
	}
	if err := token.Check(m.Metadata); err != nil {
		t.Lacks = err.Error()
	}
	template, _ := m.String(templateKey)
	t.TemplateBytes = len(template)
}
