//go:build !linux && !darwin

package main

import (
	"os"

	"github.com/chzyer/readline"
)

// keyboard reads the terminal for a prompt. What is typed while there is none is left to
// the system.
type keyboard struct{ *readline.CancelableStdin }

func openKeyboard() (*keyboard, error) {
	return &keyboard{readline.NewCancelableStdin(readline.Stdin)}, nil
}

func (k *keyboard) atPrompt(bool)         {}
func (k *keyboard) exitRaw() func() error { return nil } // the line editor's own

func (k *keyboard) OnChange([]rune, int, rune) ([]rune, int, bool) { return nil, 0, false }
