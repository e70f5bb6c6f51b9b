package engine

import (
	"errors"
	"fmt"

	"leat/engine/token"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/step"
	"leat/vk"
	"leat/vk/file"
)

// Errors that a caller may ask for with errors.Is.
var (
	// ErrDeviceLost: the driver gave up on the device; the Model is dead. After any other error it is not.
	ErrDeviceLost error = vk.ErrDeviceLost
	// ErrNoDevice: this machine has no usable Vulkan; the error's Hint says what to install.
	ErrNoDevice error = vk.ErrNoDriver
	// ErrContextFull: the session holds as many tokens as it has room for.
	ErrContextFull = errors.New("the context is full")
	// ErrClosed: the session was closed, or its model; the text says which. A closed session leaves its model and all other sessions as
	// they are.
	ErrClosed = errors.New("closed")
	// ErrBusy: another call of the session has not returned yet, or its sequence is still being ranged over.
	ErrBusy = errors.New("the session is busy with another call")
	// ErrNoTokenizer: the file has no tokenizer, or one that is not supported; the text says which. The model runs on token ids.
	ErrNoTokenizer = errors.New("the model has no tokenizer")
	// ErrNoChatTemplate: the file does not say how a conversation is written.
	ErrNoChatTemplate = errors.New("the file has no chat template")
	// ErrNoTokens: a call was given no tokens to run, and none were left from before.
	ErrNoTokens = errors.New("no tokens were given")
)

var (
	errSessionClosed = fmt.Errorf("the session is %w", ErrClosed)
	errModelClosed   = fmt.Errorf("the model is %w", ErrClosed)
)

// OptionError names an option, what was found and what is wanted.
type OptionError struct {
	Name        string // of the field, as "KVType" or "Tuning.Chunk"
	Found, Want string
}

// Error names all three.
func (e *OptionError) Error() string {
	return fmt.Sprintf("option %s: found %q, wanted %s", e.Name, e.Found, e.Want)
}

// TokenError says that a token id is none of the model's.
type TokenError struct {
	ID           token.ID
	Index, Count int // of the id among those that were given
	VocabSize    int // ids are 0 to VocabSize-1
}

// Error names the id and its place.
func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d of %d: found id %d, wanted 0 to %d", e.Index, e.Count, e.ID, e.VocabSize-1)
}

// BudgetError says what did not fit into a memory budget.
type BudgetError struct {
	What       string // as "a KV cache of 32768 tokens"
	Tier       Tier   // VRAM, or Host
	Need, Have int64  // bytes
	Remedy     string // for a person
}

// Error names what, and both sizes.
func (e *BudgetError) Error() string { return e.inner().Error() }

// Hint says what to change.
func (e *BudgetError) Hint() string { return e.Remedy }

func (e *BudgetError) inner() *plan.BudgetError {
	return &plan.BudgetError{What: e.What, Tier: plan.Tier(e.Tier), Need: e.Need, Have: e.Have, Remedy: e.Remedy}
}

// NotFiniteError says that a model computed logits that are not finite numbers: its weights are broken, or its values left the range of
// their type.
type NotFiniteError struct {
	Position int      // in the session, of the token whose logits they are
	Token    token.ID // the first one whose logit is not finite
	err      error
}

// SourceChangedError says that a file of the model was written to after [Load]: what VRAM and RAM hold stays good, what would be read
// from the file is refused.
type SourceChangedError struct {
	Path string
	err  error
}

// UnsupportedError says what about a model we cannot run.
type UnsupportedError struct {
	What string // as "architecture"
	Have string // what the file has
	Want string // what is supported; "": there is no list
	err  error
}

// Error says what was found.
func (e *NotFiniteError) Error() string { return e.err.Error() }

// Hint says what such an error often means.
func (e *NotFiniteError) Hint() string { return hint(e.err) }

// Error says how the file differs.
func (e *SourceChangedError) Error() string { return e.err.Error() }

// Hint says what to do.
func (e *SourceChangedError) Hint() string { return hint(e.err) }

// Error says what is not supported.
func (e *UnsupportedError) Error() string { return e.err.Error() }

// Hint names what would be accepted.
func (e *UnsupportedError) Hint() string { return hint(e.err) }

// Unwrap has what was found and what was expected of the file.
func (e *SourceChangedError) Unwrap() error { return e.err }

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

func hint(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// noTokenizer is why a model has no tokenizer, and [ErrNoTokenizer].
type noTokenizer struct{ reason error }

func (e *noTokenizer) Error() string   { return e.reason.Error() }
func (e *noTokenizer) Unwrap() []error { return []error{e.reason, ErrNoTokenizer} }

// public lets callers outside of this module find errors of our internal packages, which they can't name: errors.As gives them this package's
// types. All errors that internal packages may be the cause of go out through it.
func public(err error) error {
	if err == nil {
		return nil
	}
	return &outward{err}
}

type outward struct{ error }

func (e *outward) Unwrap() error { return e.error }

// As makes this package's errors of internal ones.
func (e *outward) As(target any) bool {
	switch t := target.(type) {
	case **BudgetError:
		if in, ok := find[*plan.BudgetError](e.error); ok {
			*t = &BudgetError{in.What, Tier(in.Tier), in.Need, in.Have, in.Remedy}
			return true
		}
	case **NotFiniteError:
		if in, ok := find[*step.NotFiniteError](e.error); ok {
			*t = &NotFiniteError{in.Position, in.Token, in}
			return true
		}
	case **SourceChangedError:
		if in, ok := find[*file.ChangedError](e.error); ok {
			*t = &SourceChangedError{in.Path, in}
			return true
		}
	case **UnsupportedError:
		if in, ok := find[*arch.UnsupportedError](e.error); ok {
			*t = &UnsupportedError{in.What, in.Have, in.Want, in}
			return true
		}
	}
	return false
}

func find[E error](err error) (found E, ok bool) {
	ok = errors.As(err, &found)
	return found, ok
}
