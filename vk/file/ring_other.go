//go:build !linux

package file

import (
	"context"
	"errors"
	"fmt"
)

// Ring is Linux' io_uring; there is none here.
type Ring struct{}

// NewRing fails here.
func NewRing(int, Fault) (*Ring, error) {
	return nil, fmt.Errorf("open an io_uring: %w", errors.ErrUnsupported)
}

// Start fails here.
func (*Ring) Start(context.Context, *Request) error { return ErrClosed }

// Close does nothing here.
func (*Ring) Close() {}
