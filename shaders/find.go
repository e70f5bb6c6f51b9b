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

func find(op, typ string) (*Kernel, error) { return findVariant(op, FP32, typ) }

func findVariant(op, variant, typ string) (*Kernel, error) {
	name, op := kernelName(op, variant, typ), kernelName(op, variant, "")
	k, ok := byName[name]
	switch {
	case !ok:
		return nil, &MissingError{op, typ, "no such kernel in the table"}
	case len(k.SPIRV) == 0:
		return nil, &MissingError{op, typ, "spv/" + name + ".spv is not built in"}
	}
	return k, nil
}

// GetRows finds the kernel that looks rows up in a table of type t.
func GetRows(t gguf.Type) (*Kernel, error) { return find("get_rows", t.String()) }

// MulMatVec finds the kernel for weights of type t and a few rows of X.
func MulMatVec(t gguf.Type) (*Kernel, error) { return find("mul_mat_vec", t.String()) }

// MulMatVecVariant finds a variant of mul_mat_vec other than fp32's.
func MulMatVecVariant(variant string, t gguf.Type) (*Kernel, error) {
	return findVariant("mul_mat_vec", variant, t.String())
}

// QuantizeQ8 finds quantize_q8.
func QuantizeQ8() (*Kernel, error) { return find("quantize_q8", "") }

// MulMat finds the kernel for weights of type t and many rows of X.
func MulMat(t gguf.Type) (*Kernel, error) { return find("mul_mat", t.String()) }

// RMSNormQ8 finds the rms_norm whose output is bytes too.
func RMSNormQ8() (*Kernel, error) { return findVariant("rms_norm", Q8, "") }

// RopeKV finds the rope whose keys go into a KV cache of type t, one of [KVTypes].
func RopeKV(t gguf.Type) (*Kernel, error) { return findVariant("rope", KV, t.String()) }

// RopeNormKV finds the same behind an rms_norm of each head.
func RopeNormKV(t gguf.Type) (*Kernel, error) { return findVariant("rope", NormKV, t.String()) }

// FlashAttnSplit finds the attention kernel for few rows over a KV cache of type t, one of [KVTypes].
func FlashAttnSplit(t gguf.Type) (*Kernel, error) {
	return findVariant("flash_attn", Split, t.String())
}

// FlashAttnJoined finds the flash_attn_split that puts the parts together itself.
func FlashAttnJoined(t gguf.Type) (*Kernel, error) {
	return findVariant("flash_attn", Joined, t.String())
}

// FlashAttnJoin finds the kernel that puts the parts of flash_attn_split together.
func FlashAttnJoin() (*Kernel, error) { return findVariant("flash_attn", Join, "") }

// KVAppend finds the kernel that stores into a KV cache of type t, one of [KVTypes].
func KVAppend(t gguf.Type) (*Kernel, error) { return find("kv_append", t.String()) }

// FlashAttn finds the attention kernel over a KV cache of type t, one of [KVTypes].
func FlashAttn(t gguf.Type) (*Kernel, error) { return find("flash_attn", t.String()) }

// FlashAttnCM finds the attention kernel for many rows of one sequence over a KV cache of type t, one of [KVTypesCM].
func FlashAttnCM(t gguf.Type) (*Kernel, error) { return findVariant("flash_attn", CM, t.String()) }

// RMSNorm finds rms_norm.
func RMSNorm() (*Kernel, error) { return find("rms_norm", "") }

// Rope finds rope.
func Rope() (*Kernel, error) { return find("rope", "") }

// SoftMax finds soft_max.
func SoftMax() (*Kernel, error) { return find("soft_max", "") }

// SwiGLU finds swiglu.
func SwiGLU() (*Kernel, error) { return find("swiglu", "") }

// GeGLU finds geglu.
func GeGLU() (*Kernel, error) { return find("geglu", "") }

// Add finds add.
func Add() (*Kernel, error) { return find("add", "") }

// Argmax finds argmax.
func Argmax() (*Kernel, error) { return find("argmax", "") }

// ArgmaxJoined finds the argmax whose rows are cut into parts.
func ArgmaxJoined() (*Kernel, error) { return findVariant("argmax", Joined, "") }

// Checksum finds checksum.
func Checksum() (*Kernel, error) { return find("checksum", "") }

// TileF16 finds the kernel that brings rows of X into tiles.
func TileF16() (*Kernel, error) { return find("tile_f16", "") }

// TileF16Variant finds the kernel that brings rows into tiles and, but for Wide, makes them on the way.
func TileF16Variant(variant string) (*Kernel, error) { return findVariant("tile_f16", variant, "") }

// DequantF16 finds the kernel that brings weights of type t into tiles.
func DequantF16(t gguf.Type) (*Kernel, error) { return find("dequant_f16", t.String()) }

// MulMatCM finds the product of two matrices in tiles.
func MulMatCM() (*Kernel, error) { return findVariant("mul_mat", CM, "") }

// MulMatQCM finds the product of a matrix of type t, in blocks, with one in tiles.
func MulMatQCM(t gguf.Type) (*Kernel, error) { return findVariant("mul_mat", BlocksCM, t.String()) }

// TopKMoE finds topk_moe.
func TopKMoE() (*Kernel, error) { return find("topk_moe", "") }

// TopKMoEHeld finds the topk_moe whose lanes hold the scores.
func TopKMoEHeld() (*Kernel, error) { return findVariant("topk_moe", Held, "") }

// TopKMoERouted finds the topk_moe behind a norm and a router of type t.
func TopKMoERouted(t gguf.Type) (*Kernel, error) { return findVariant("topk_moe", Routed, t.String()) }

// GroupExperts finds group_experts.
func GroupExperts() (*Kernel, error) { return find("group_experts", "") }

// MulMatVecID finds the product of few rows with experts of type t.
func MulMatVecID(t gguf.Type) (*Kernel, error) { return find("mul_mat_vec_id", t.String()) }

// MulMatVecIDInt8 finds the same for rows in bytes.
func MulMatVecIDInt8(t gguf.Type) (*Kernel, error) {
	return findVariant("mul_mat_vec_id", Int8, t.String())
}

// MulMatID finds the product of many rows with experts of type t.
func MulMatID(t gguf.Type) (*Kernel, error) { return find("mul_mat_id", t.String()) }

// MulMatIDCM finds the same for rows in tiles.
func MulMatIDCM(t gguf.Type) (*Kernel, error) { return findVariant("mul_mat_id", CM, t.String()) }

// SumExperts finds sum_experts.
func SumExperts() (*Kernel, error) { return find("sum_experts", "") }

// ExpertsThere finds experts_there.
func ExpertsThere() (*Kernel, error) { return find("experts_there", "") }

// SigmoidMul finds sigmoid_mul.
func SigmoidMul() (*Kernel, error) { return find("sigmoid_mul", "") }

// SwiGLUOAI finds swiglu_oai.
func SwiGLUOAI() (*Kernel, error) { return find("swiglu_oai", "") }

// Cpy finds cpy.
func Cpy() (*Kernel, error) { return find("cpy", "") }

// SSMConv finds ssm_conv.
func SSMConv() (*Kernel, error) { return find("ssm_conv", "") }

// GatedDeltaNet finds gated_delta_net.
func GatedDeltaNet() (*Kernel, error) { return find("gated_delta_net", "") }

// MulMatHeads finds the product of heads with matrices of type t of their own.
func MulMatHeads(t gguf.Type) (*Kernel, error) { return find("mul_mat_heads", t.String()) }
