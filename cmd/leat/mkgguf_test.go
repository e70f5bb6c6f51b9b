package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"leat/gguf"
	"leat/tools/synth/synthetic"
)

// cmdMkgguf writes a small model that is wrong in one way. Its arguments change what a
// good one says: KEY=TEXT a metadata value, a string or of the kind before a colon, KEY= takes it away; NAME:TYPE the type
// of a tensor (its bytes become zeros), +NAME one tensor more; and the first, FILE or ARCH:FILE, what is written where.
func cmdMkgguf(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: mkgguf [ARCH:]FILE [KEY=TEXT | TENSOR:TYPE | +TENSOR]...")
	}
	arch, file, found := strings.Cut(args[0], ":")
	if !found {
		arch, file = "llama", args[0]
	}
	file = ts.MkAbs(file)
	ts.Check(synthetic.Write(file, synthetic.Options{Arch: arch, Shape: synthetic.Shape{BlockCount: 1}}))
	ts.Check(rewrite(file, args[1:]))
}

// rewrite writes the model at path again with the changes.
func rewrite(path string, changes []string) error {
	in, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	types := map[string]gguf.Type{}
	var more []gguf.WriteTensor
	for _, c := range changes {
		if key, value, ok := strings.Cut(c, "="); ok && value == "" {
			in.Metadata.Delete(key)
		} else if ok {
			err = in.Metadata.Set(key, metadataValue(value))
		} else if name, ok := strings.CutPrefix(c, "+"); ok {
			more = append(more, gguf.WriteTensor{Name: name, Type: gguf.F32, Shape: []int64{1}, Data: bytes.NewReader(make([]byte, 4))})
		} else if name, text, ok := strings.Cut(c, ":"); ok {
			types[name], err = gguf.ParseType(text)
		} else {
			err = errors.New("mkgguf: want KEY=TEXT, TENSOR:TYPE or +TENSOR, found " + strconv.Quote(c))
		}
		if err != nil {
			return err
		}
	}
	var tensors []gguf.WriteTensor
	for i := range in.Tensors {
		t := &in.Tensors[i]
		data, err := in.ReadTensor(t)
		if err != nil {
			return err
		}
		kind := t.Type
		if other, ok := types[t.Name]; ok {
			row, err := other.RowBytes(t.Shape[len(t.Shape)-1])
			if err != nil {
				return err
			}
			rows := int64(1)
			for _, n := range t.Shape[:len(t.Shape)-1] {
				rows *= n
			}
			kind, data = other, make([]byte, row*rows)
			delete(types, t.Name)
		}
		tensors = append(tensors, gguf.WriteTensor{Name: t.Name, Type: kind, Shape: t.Shape, Data: bytes.NewReader(data)})
	}
	for name := range types {
		return errors.New("mkgguf: the model has no tensor " + name)
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, in.Metadata, append(tensors, more...), gguf.WriteOptions{}); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// metadataValue is the value that a text of mkgguf means.
func metadataValue(text string) any {
	kind, rest, _ := strings.Cut(text, ":")
	n, err := strconv.ParseFloat(rest, 64)
	switch {
	case kind == "float32" && err == nil:
		return float32(n)
	case kind == "uint32" && err == nil:
		return uint32(n)
	case kind == "strings":
		return strings.Split(rest, ",")
	}
	return text
}

// cmdExits runs a command whose exit code must be the one given.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: exits CODE COMMAND ARGUMENT...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := atoi(ts, args[0]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// cmdFault fails unless the last command printed nothing to stdout and, to stderr, one line
// of error and one of hint that match.
func cmdFault(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: fault ERROR HINT")
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout is not empty: %q", out)
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	if len(lines) != 2 {
		ts.Fatalf("stderr has %d lines, want one error and one hint:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range []string{"leat: error: ", "leat: hint: "} {
		text, ok := strings.CutPrefix(lines[i], want)
		if !ok || !strings.Contains(text, args[i]) {
			ts.Fatalf("found %q, want %q with %q", lines[i], want, args[i])
		}
	}
}
