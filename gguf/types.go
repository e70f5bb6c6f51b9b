package gguf

import (
	"fmt"
	"math"
	"strings"
)

// Type is a ggml tensor type, by ggml's number.
type Type uint32

// The tensor types, by the numbers files carry. The gaps are types that ggml took
// back: 4, 5 (Q4_2, Q4_3), 31–33 and 36–38 (Q4_0 and IQ4_NL in repacked layouts).
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

type typeRow struct {
	name     string
	values   int    // values in a block
	bytes    int    // bytes of a block
	fileType int    // number in general.file_type of files whose matrices are of the type
	removed  string // what the number once meant; such a tensor can't be read
}

var typeTable = [...]typeRow{
	F32:     {name: "F32", values: 1, bytes: 4},
	F16:     {name: "F16", values: 1, bytes: 2, fileType: 1},
	Q4_0:    {name: "Q4_0", values: 32, bytes: 18, fileType: 2},
	Q4_1:    {name: "Q4_1", values: 32, bytes: 20, fileType: 3},
	4:       {removed: "Q4_2"},
	5:       {removed: "Q4_3"},
	Q5_0:    {name: "Q5_0", values: 32, bytes: 22, fileType: 8},
	Q5_1:    {name: "Q5_1", values: 32, bytes: 24, fileType: 9},
	Q8_0:    {name: "Q8_0", values: 32, bytes: 34, fileType: 7},
	Q8_1:    {name: "Q8_1", values: 32, bytes: 36},
	Q2_K:    {name: "Q2_K", values: 256, bytes: 84, fileType: 10},
	Q3_K:    {name: "Q3_K", values: 256, bytes: 110, fileType: 11},
	Q4_K:    {name: "Q4_K", values: 256, bytes: 144, fileType: 14},
	Q5_K:    {name: "Q5_K", values: 256, bytes: 176, fileType: 16},
	Q6_K:    {name: "Q6_K", values: 256, bytes: 210, fileType: 18},
	Q8_K:    {name: "Q8_K", values: 256, bytes: 292},
	IQ2_XXS: {name: "IQ2_XXS", values: 256, bytes: 66, fileType: 19},
	IQ2_XS:  {name: "IQ2_XS", values: 256, bytes: 74, fileType: 20},
	IQ3_XXS: {name: "IQ3_XXS", values: 256, bytes: 98, fileType: 23},
	IQ1_S:   {name: "IQ1_S", values: 256, bytes: 50, fileType: 24},
	IQ4_NL:  {name: "IQ4_NL", values: 32, bytes: 18, fileType: 25},
	IQ3_S:   {name: "IQ3_S", values: 256, bytes: 110, fileType: 26},
	IQ2_S:   {name: "IQ2_S", values: 256, bytes: 82, fileType: 28},
	IQ4_XS:  {name: "IQ4_XS", values: 256, bytes: 136, fileType: 30},
	I8:      {name: "I8", values: 1, bytes: 1},
	I16:     {name: "I16", values: 1, bytes: 2},
	I32:     {name: "I32", values: 1, bytes: 4},
	I64:     {name: "I64", values: 1, bytes: 8},
	F64:     {name: "F64", values: 1, bytes: 8},
	IQ1_M:   {name: "IQ1_M", values: 256, bytes: 56, fileType: 31},
	BF16:    {name: "BF16", values: 1, bytes: 2, fileType: 32},
	31:      {removed: "Q4_0_4_4"},
	32:      {removed: "Q4_0_4_8"},
	33:      {removed: "Q4_0_8_8"},
	TQ1_0:   {name: "TQ1_0", values: 256, bytes: 54, fileType: 36},
	TQ2_0:   {name: "TQ2_0", values: 256, bytes: 66, fileType: 37},
	36:      {removed: "IQ4_NL_4_4"},
	37:      {removed: "IQ4_NL_4_8"},
	38:      {removed: "IQ4_NL_8_8"},
	MXFP4:   {name: "MXFP4", values: 32, bytes: 17, fileType: 38},
	NVFP4:   {name: "NVFP4", values: 64, bytes: 36, fileType: 39},
	Q1_0:    {name: "Q1_0", values: 128, bytes: 18, fileType: 40},
	Q2_0:    {name: "Q2_0", values: 64, bytes: 18, fileType: 41},
}

func (t Type) row() typeRow {
	if int64(t) < int64(len(typeTable)) {
		return typeTable[t]
	}
	return typeRow{}
}

// String is ggml's name of the type, "Q4_K", or "type 99" for one we don't know.
func (t Type) String() string {
	switch r := t.row(); {
	case r.name != "":
		return r.name
	case r.removed != "":
		return fmt.Sprintf("type %d (once %s)", uint32(t), r.removed)
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Valid reports whether the type is known, so that its sizes are.
func (t Type) Valid() bool { return t.row().values > 0 }

// Removed reports whether ggml once had the type and took it back.
func (t Type) Removed() bool { return t.row().removed != "" }

// BlockSize is the number of values in a block; 0 for an unknown type.
func (t Type) BlockSize() int { return t.row().values }

// BlockBytes is the number of bytes of a block; 0 for an unknown type.
func (t Type) BlockBytes() int { return t.row().bytes }

// FileType is the number in general.file_type of files whose matrices are all of the type; 0, F32's, where there is none.
func (t Type) FileType() int { return t.row().fileType }

// fileTypes are the names of general.file_type, by llama.cpp's numbers.
var fileTypes = map[int64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
	11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
	19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S",
	27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
	39: "NVFP4", 40: "Q1_0", 41: "Q2_0",
}

// FileTypeName is the name of a number in general.file_type, "" if it is not known.
func FileTypeName(n int64) string { return fileTypes[n] }

// RowBytes is the size of a row of cols values, which must be whole blocks.
func (t Type) RowBytes(cols int64) (int64, error) {
	r := t.row()
	if r.values == 0 {
		return 0, fmt.Errorf("size of a row: found %v, want a known type", t)
	}
	if cols < 0 || cols%int64(r.values) != 0 {
		return 0, fmt.Errorf("size of a row of %s: found %d values, want a multiple of %d", r.name, cols, r.values)
	}
	blocks := cols / int64(r.values)
	if blocks > math.MaxInt64/int64(r.bytes) {
		return 0, fmt.Errorf("size of a row of %s: found %d values, want fewer than 2⁶³ bytes", r.name, cols)
	}
	return blocks * int64(r.bytes), nil
}

// ParseType finds a type by its name; case does not matter.
func ParseType(s string) (Type, error) {
	for t, r := range typeTable {
		if r.name != "" && strings.EqualFold(r.name, s) {
			return Type(t), nil
		}
	}
	return 0, fmt.Errorf("tensor type: found %q, want one of ggml's such as Q4_K", s)
}
