package shaders

import (
	"fmt"

	"leat/gguf"
)

// MissingError says that the table has no such kernel.
type MissingError struct {
	Op   string
	Type string // "" for an op without types
	Why  string
}

func (e *MissingError) Error() string {
	what := e.Op
	if e.Type != "" {
		what += " for " + e.Type
	}
	return fmt.Sprintf("find kernel %s: %s", what, e.Why)
}

// Find returns an op's kernel of a variant, for a type where the op has one for each.
func Find(op, variant string, of ...gguf.Type) (*Kernel, error) {
	typ := ""
	if len(of) > 0 {
		typ = of[0].String()
	}
	name, op := kernelName(op, variant, typ), kernelName(op, variant, "")
	k, ok := byName[name]
	switch {
	case !ok:
		return nil, &MissingError{op, typ, "no such kernel in the table"}
	case len(k.SPIRV) == 0:
		return nil, &MissingError{op, typ, "spv/" + k.Module + ".spv is not built in"}
	}
	return k, nil
}
