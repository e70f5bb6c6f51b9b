package main

import (
	"bufio"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"leat/decompose/pack"
	"leat/engine/token"
)

func init() { commands = append(commands, newTokenizeCmd) }

type tokenizeFlags struct {
	text, file string
	ids, json  bool
	noBOS      bool
	special    bool
}

func newTokenizeCmd(a *app) *cobra.Command {
	f := &tokenizeFlags{}
	cmd := &cobra.Command{
		Use:   "tokenize MODEL (-p TEXT | -f FILE)",
		Short: "Show the tokens that a model sees in a text",
		Long: `Show the tokens that a model sees in a text, one a line: its id, a tab, and the
piece of text it stands for, quoted. A control token shows in the vocabulary's own
spelling, unquoted. The beginning and end tokens that the model's file asks for are
put round the text; --no-bos leaves them out.

The text may be in any encoding; what isn't UTF-8 shows as \x escapes. MODEL may be
a GGUF with a vocabulary alone.

Exit status: 0 it worked; 1 the model or the text can't be read, or the model's
tokenizer is not supported; 2 the command line is wrong.`,
		Example: `  leat tokenize demo -p "Once upon a time"
  leat tokenize model.gguf -f prompt.txt --ids
  echo -n "<|im_start|>user" | leat tokenize demo -f - --special --json`,
		Args: wants("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := modelExists(args[0]); err != nil {
				return err
			}
			// -p "" is a text too: an empty one.
			text := f.text
			if !cmd.Flags().Changed("prompt") || f.file != "" || text != "" {
				var err error
				if text, err = readText(a, f.text, f.file); err != nil {
					return err
				}
			}
			return f.run(a, args[0], text)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.text, "prompt", "p", "", "the text")
	fs.StringVarP(&f.file, "file", "f", "", "a file with the text; - is stdin")
	fs.BoolVar(&f.ids, "ids", false, "print the ids alone, separated by spaces")
	fs.BoolVar(&f.json, "json", false, "print as JSON")
	fs.BoolVar(&f.noBOS, "no-bos", false, "add no beginning or end token")
	fs.BoolVar(&f.special, "special", false, "read the spelling of a control token as that token, as chat templates do")
	cmd.MarkFlagsMutuallyExclusive("ids", "json")
	return cmd
}

func (f *tokenizeFlags) run(a *app, arg, text string) error {
	path, err := modelPath(arg)
	if err != nil {
		return err
	}
	t, err := openTokenizer(path)
	if err != nil {
		return err
	}
	for _, note := range t.Notes() {
		a.log.Warn(note, "model", path)
	}
	ids := t.Encode(text, !f.noBOS, f.special)
	switch {
	case f.json:
		return a.printJSON(tokenList(t, ids))
	case f.ids:
		return printIDs(a, ids)
	}
	w := bufio.NewWriter(a.out)
	for _, id := range ids {
		fmt.Fprintf(w, "%d\t%s\n", id, showPiece(t, id))
	}
	return w.Flush()
}

// openTokenizer reads the vocabulary of a GGUF or a pack.
func openTokenizer(path string) (*token.Tokenizer, error) {
	m, err := pack.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	t, err := token.New(m.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func printIDs(a *app, ids []token.ID) error {
	w := bufio.NewWriter(a.out)
	for i, id := range ids {
		if i > 0 {
			w.WriteByte(' ')
		}
		w.WriteString(strconv.Itoa(int(id)))
	}
	w.WriteByte('\n')
	return w.Flush()
}

func showPiece(t *token.Tokenizer, id token.ID) string {
	if piece := t.Piece(id); piece != nil {
		return strconv.Quote(string(piece))
	}
	return t.Text(id)
}

// tokenJSON is a token in --json. Bytes that are not UTF-8 show as U+FFFD in piece; text
// is exact, in the vocabulary's own spelling.
type tokenJSON struct {
	ID      token.ID `json:"id"`
	Piece   string   `json:"piece"`
	Text    string   `json:"text"`
	Control bool     `json:"control,omitempty"`
}

func tokenList(t *token.Tokenizer, ids []token.ID) []tokenJSON {
	list := make([]tokenJSON, len(ids))
	for i, id := range ids {
		list[i] = tokenJSON{ID: id, Piece: string(t.Piece(id)), Text: t.Text(id), Control: t.IsControl(id)}
	}
	return list
}
