package shaders

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// module is what the tests want to know of a SPIR-V module.
type module struct {
	capabilities []uint32
	addressing   uint32
	localSize    uint32
	push         []member // of the push-constant block
	spec         map[uint32]uint32
	contractible []string // float arithmetic a driver may fuse or reorder
	descriptors  int      // variables in Uniform, StorageBuffer, UniformConstant
	pointerLists int      // variables of functions that hold an array of pointers
}

type member struct {
	name   string
	offset uint32
	typ    string // "uint", "float", "uvec2"
}

// Numbers of the SPIR-V specification: operations, decorations, storage classes.
const (
	opMemberName, opExtInst, opMemoryModel, opExecutionMode, opCapability = 6, 12, 14, 16, 17
	opTypeInt, opTypeFloat, opTypeVector, opTypeStruct, opTypePointer     = 21, 22, 23, 30, 32
	opTypeArray                                                           = 28
	opSpecConstant, opVariable, opDecorate, opMemberDecorate              = 50, 59, 71, 72
	opFAdd, opFSub, opFMul, opVectorTimesScalar, opDot                    = 129, 131, 133, 142, 148

	decorationSpecID, decorationOffset, decorationNoContraction       = 1, 35, 42
	classUniformConstant, classUniform, classPush, classStorageBuffer = 0, 2, 9, 12
	classFunction                                                     = 7

	extFma, modeLocalSize, addressingPhysical64 = 50, 17, 5348
	capabilityShader, capabilityPhysicalStorage = 1, 5347
	capabilityNonUniform, capabilityShuffle     = 61, 65
	capabilityArithmetic                        = 63
	capabilityVote                              = 62
	capabilityDotPacked, capabilityDot          = 6018, 6019
	capabilityFloat16, capabilityStorage16      = 9, 4433
	capabilityInt64                             = 11
	capabilityMatrix, capabilityMemoryModel     = 6022, 5345
)

type reader struct {
	m           module
	names       map[[2]uint32]string
	offsets     map[[2]uint32]uint32
	types       map[uint32]string
	structs     map[uint32][]uint32
	arrays      map[uint32]uint32    // element
	pointers    map[uint32][2]uint32 // class, pointee
	uncontract  map[uint32]bool
	specID      map[uint32]uint32
	specDefault map[uint32]uint32
	floats      map[uint32]string // result id of float arithmetic -> operation
}

// parse reads a module. It trusts spirv-val for validity, and only checks that the words hang together.
func parse(code []byte) (*module, error) {
	if len(code) < 20 || len(code)%4 != 0 || binary.LittleEndian.Uint32(code) != 0x07230203 {
		return nil, fmt.Errorf("parse SPIR-V: %d bytes are no module", len(code))
	}
	w := make([]uint32, len(code)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	r := &reader{
		names: map[[2]uint32]string{}, offsets: map[[2]uint32]uint32{}, types: map[uint32]string{},
		structs: map[uint32][]uint32{}, arrays: map[uint32]uint32{}, pointers: map[uint32][2]uint32{}, uncontract: map[uint32]bool{},
		specID: map[uint32]uint32{}, specDefault: map[uint32]uint32{}, floats: map[uint32]string{},
	}
	for i := 5; i < len(w); {
		n := int(w[i] >> 16)
		if n == 0 || i+n > len(w) {
			return nil, fmt.Errorf("parse SPIR-V: instruction at word %d has %d words, %d are left", i, n, len(w)-i)
		}
		r.instruction(w[i]&0xffff, w[i+1:i+n])
		i += n
	}
	r.m.spec = map[uint32]uint32{}
	for id, n := range r.specID {
		r.m.spec[n] = r.specDefault[id]
	}
	for id, op := range r.floats {
		if !r.uncontract[id] {
			r.m.contractible = append(r.m.contractible, fmt.Sprintf("%s %%%d", op, id))
		}
	}
	return &r.m, nil
}

func (r *reader) instruction(op uint32, w []uint32) {
	switch op {
	case opCapability:
		r.m.capabilities = append(r.m.capabilities, w[0])
	case opMemoryModel:
		r.m.addressing = w[0]
	case opExecutionMode:
		if w[1] == modeLocalSize {
			r.m.localSize = w[2] * w[3] * w[4]
		}
	case opMemberName:
		r.names[[2]uint32{w[0], w[1]}] = text(w[2:])
	case opMemberDecorate:
		if w[2] == decorationOffset {
			r.offsets[[2]uint32{w[0], w[1]}] = w[3]
		}
	case opDecorate:
		switch w[1] {
		case decorationNoContraction:
			r.uncontract[w[0]] = true
		case decorationSpecID:
			r.specID[w[0]] = w[2]
		}
	case opSpecConstant:
		r.specDefault[w[1]] = w[2]
	case opTypeInt:
		r.types[w[0]] = map[bool]string{true: "uint", false: fmt.Sprintf("int width %d signed %d", w[1], w[2])}[w[1] == 32 && w[2] == 0]
	case opTypeFloat:
		r.types[w[0]] = map[bool]string{true: "float", false: fmt.Sprintf("float width %d", w[1])}[w[1] == 32]
	case opTypeVector:
		r.types[w[0]] = map[string]string{"uint": "uvec", "float": "vec"}[r.types[w[1]]] + fmt.Sprint(w[2])
	case opTypeStruct:
		r.structs[w[0]] = w[1:]
	case opTypeArray:
		r.arrays[w[0]] = w[1]
	case opTypePointer:
		r.pointers[w[0]] = [2]uint32{w[1], w[2]}
	case opVariable:
		r.variable(w)
	case opFAdd, opFSub, opFMul, opVectorTimesScalar, opDot:
		r.floats[w[1]] = map[uint32]string{opFAdd: "FAdd", opFSub: "FSub", opFMul: "FMul", opVectorTimesScalar: "VectorTimesScalar", opDot: "Dot"}[op]
	case opExtInst:
		if w[3] == extFma {
			r.floats[w[1]] = "Fma"
		}
	}
}

func (r *reader) variable(w []uint32) {
	switch w[2] {
	case classPush:
		id := r.pointers[w[0]][1]
		for i, t := range r.structs[id] {
			key := [2]uint32{id, uint32(i)}
			r.m.push = append(r.m.push, member{r.names[key], r.offsets[key], r.types[t]})
		}
	case classUniformConstant, classUniform, classStorageBuffer:
		r.m.descriptors++
	case classFunction:
		if r.listsPointers(r.pointers[w[0]][1], false) {
			r.m.pointerLists++
		}
	}
}

// listsPointers reports whether a type has an array that holds a pointer, in structs or by itself.
func (r *reader) listsPointers(typ uint32, inArray bool) bool {
	if _, ok := r.pointers[typ]; ok {
		return inArray
	}
	if element, ok := r.arrays[typ]; ok {
		return r.listsPointers(element, true)
	}
	return slices.ContainsFunc(r.structs[typ], func(member uint32) bool { return r.listsPointers(member, inArray) })
}

// text reads a SPIR-V string: bytes in words, ended by a zero.
func text(w []uint32) string {
	var b strings.Builder
	for _, x := range w {
		for range 4 {
			if byte(x) == 0 {
				return b.String()
			}
			b.WriteByte(byte(x))
			x >>= 8
		}
	}
	return b.String()
}
