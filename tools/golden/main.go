package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"leat/tools/golden/tiny"
	"leat/tools/golden/truth"
)

const usage = `Usage: golden [flags] [NAME...]

Writes NAME.gguf, NAME.deq.f32 and NAME.deq.json of the models named, or of all: %q.

Example: go run ./tools/golden -o engine/testdata

`

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run returns 0, 1 for a failure, 2 for a wrong command line.
func run(args []string, errw io.Writer) int {
	fs := flag.NewFlagSet("golden", flag.ContinueOnError)
	fs.SetOutput(errw)
	dir := fs.String("o", filepath.Join("engine", "testdata"), "folder to write to")
	fs.Usage = func() {
		fmt.Fprintf(errw, usage, tiny.Names())
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		return 0
	} else if err != nil {
		return 2
	}
	names := fs.Args()
	if len(names) == 0 {
		names = tiny.Names()
	}
	for _, name := range names {
		if err := write(*dir, name); err != nil {
			fmt.Fprintln(errw, "golden: error:", err)
			return 1
		}
	}
	return 0
}

// Tokens of a golden: the prompt, and how many follow greedily.
const prompt, greedy = 48, 8

// reference is a .deq.json.
type reference struct {
	Model  string `json:"model"`
	Vocab  int    `json:"n_vocab"`
	Rows   int    `json:"rows"`
	Tokens []int  `json:"tokens"`
	Greedy []int  `json:"greedy"`
}

// write makes a model and its golden.
func write(dir, name string) error {
	var model bytes.Buffer
	if err := tiny.Write(&model, name); err != nil {
		return err
	}
	base := filepath.Join(dir, name)
	if err := os.WriteFile(base+".gguf", model.Bytes(), 0o644); err != nil {
		return err
	}
	text, logits, err := golden(base+".gguf", name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".deq.json", text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(base+".deq.f32", logits, 0o644)
}

// golden computes what belongs to the model at path.
func golden(path, name string) (text, logits []byte, err error) {
	m, err := truth.Open(path)
	if err != nil {
		return nil, nil, err
	}
	ref := reference{Model: name + ".gguf", Vocab: m.Vocab(), Rows: prompt + greedy}
	for i := range prompt {
		ref.Tokens = append(ref.Tokens, (i*i*7+i*31+5)%(m.Vocab()-1))
	}
	var rows [][]float64
	if ref.Greedy, rows, err = m.Greedy(ref.Tokens, greedy); err != nil {
		return nil, nil, fmt.Errorf("compute logits of %s: %w", name, err)
	}
	for _, row := range rows {
		for _, v := range row {
			logits = binary.LittleEndian.AppendUint32(logits, math.Float32bits(float32(v)))
		}
	}
	text, err = json.Marshal(ref)
	return append(text, '\n'), logits, err
}
