package main

import (
	"encoding/binary"
	"fmt"
)

// Numbers of the SPIR-V specification.
const (
	headerBytes             = 20
	opExtInst               = 12
	opDecorate              = 71
	opMemberDecorate        = 72
	decorationNoContraction = 42
	glslFma                 = 50
)

// decorateFma marks every fma NoContraction. glslang marks additions and multiplications that reach
// a precise variable, but forgets fma, which Vulkan lets a driver split, and then rearrange.
func decorateFma(code []byte) ([]byte, error) {
	if len(code) < headerBytes || len(code)%4 != 0 {
		return nil, fmt.Errorf("SPIR-V of %d bytes, want a header of %d and whole words", len(code), headerBytes)
	}
	word := func(off int) uint32 { return binary.LittleEndian.Uint32(code[off:]) }
	var decorations []byte
	annotations := -1 // where the module's section of decorations begins
	for off := headerBytes; off < len(code); {
		op, bytes := word(off)&0xffff, int(word(off)>>16)*4
		if bytes == 0 || off+bytes > len(code) {
			return nil, fmt.Errorf("SPIR-V instruction at byte %d has %d bytes, %d are left", off, bytes, len(code)-off)
		}
		switch {
		case (op == opDecorate || op == opMemberDecorate) && annotations < 0:
			annotations = off
		case op == opExtInst && word(off+16) == glslFma: // the one set glslang imports
			for _, w := range []uint32{3<<16 | opDecorate, word(off + 8), decorationNoContraction} {
				decorations = binary.LittleEndian.AppendUint32(decorations, w)
			}
		}
		off += bytes
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
