//go:build !linux && !darwin

package main

import "github.com/chzyer/readline"

// keyboard reads the terminal for a prompt. What is typed while there is none is left to
// the system.
type keyboard struct{ *readline.CancelableStdin }

func openKeyboard() (*keyboard, error) {
	return &keyboard{readline.NewCancelableStdin(readline.Stdin)}, nil
}

// configure has the line editor read from here.
func (k *keyboard) configure(c *readline.Config) { c.Stdin = k }

func (k *keyboard) atPrompt(bool) {}
func (k *keyboard) restore()      {} // the line editor does
