package main

import (
	"encoding/binary"
	"fmt"
)

// Numbers of the SPIR-V specification.
const (
	headerBytes             = 20
	opName                  = 5
	opMemberName            = 6
	opExtInst               = 12
	opTypePointer           = 32
	opDecorate              = 71
	opMemberDecorate        = 72
	decorationNoContraction = 42
	glslFma                 = 50
	classPush               = 9
)

// walk visits the instructions of a module: where each is, its operation and its words.
func walk(code []byte, visit func(off int, op uint32, w []byte)) error {
	if len(code) < headerBytes || len(code)%4 != 0 {
		return fmt.Errorf("SPIR-V of %d bytes, want a header of %d and whole words", len(code), headerBytes)
	}
	for off := headerBytes; off < len(code); {
		first := binary.LittleEndian.Uint32(code[off:])
		bytes := int(first>>16) * 4
		if bytes == 0 || off+bytes > len(code) {
			return fmt.Errorf("SPIR-V instruction at byte %d has %d bytes, %d are left", off, bytes, len(code)-off)
		}
		visit(off, first&0xffff, code[off:off+bytes])
		off += bytes
	}
	return nil
}

// decorateFma marks every fma NoContraction. glslang marks additions and multiplications that reach
// a precise variable, but forgets fma, which Vulkan lets a driver split, and then rearrange.
func decorateFma(code []byte) ([]byte, error) {
	var decorations []byte
	annotations := -1 // where the module's section of decorations begins
	err := walk(code, func(off int, op uint32, w []byte) {
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(w[4*i:]) }
		switch {
		case (op == opDecorate || op == opMemberDecorate) && annotations < 0:
			annotations = off
		case op == opExtInst && word(4) == glslFma: // the one set glslang imports
			for _, w := range []uint32{3<<16 | opDecorate, word(2), decorationNoContraction} {
				decorations = binary.LittleEndian.AppendUint32(decorations, w)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if decorations == nil {
		return code, nil
	}
	if annotations < 0 {
		return nil, fmt.Errorf("SPIR-V has fma and no decoration, want the push-constant block's")
	}
	out := append([]byte(nil), code[:annotations]...)
	out = append(out, decorations...)
	return append(out, code[annotations:]...), nil
}

// dropNames removes the names of types, functions and variables, which are a seventh of a module. The members of the push-constant block keep
// theirs: a test reads them.
func dropNames(code []byte) ([]byte, error) {
	push := map[uint32]bool{} // types of push constants
	word := func(w []byte, i int) uint32 { return binary.LittleEndian.Uint32(w[4*i:]) }
	err := walk(code, func(_ int, op uint32, w []byte) {
		if op == opTypePointer && word(w, 2) == classPush {
			push[word(w, 3)] = true
		}
	})
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), code[:headerBytes]...)
	err = walk(code, func(_ int, op uint32, w []byte) {
		if op != opName && (op != opMemberName || push[word(w, 1)]) {
			out = append(out, w...)
		}
	})
	return out, err
}
