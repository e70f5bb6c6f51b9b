package kernels

import (
	"maps"
	"slices"
	"strings"

	"leat/shaders"
)

// Rule says when a variant of an op is used and what it needs of the device, in words that docs/kernels.md and leat doctor print.
type Rule struct {
	Op, Variant string                  // names of op and variant in the shaders' table
	When        string                  // role, shapes and types; "": always
	Needs       string                  // device features, in words; "": none
	lacks       func(k *Kernels) string // the needed features that the device lacks, "" if none; nil: none are needed
	kernels     []string                // rows of the table that the variant needs, without the types in their names
}

// variant is one way to record an op with arguments of type A.
type variant[A any] struct {
	Rule
	unfit  func(r *Recorder, a *A) string // says why the variant can't, or should not, record a; "": it fits. Each step calls it, so it returns constant texts
	record func(r *Recorder, a *A) error  // records a; called only if unfit returned ""
}

// choose returns the first variant that the device can run and that fits a; nil: there is none. It calls [Watch].Considered for each variant that it examines.
func choose[A any](r *Recorder, list []*variant[A], a *A) *variant[A] {
	for _, v := range list {
		why := ""
		if v.lacks != nil {
			why = v.lacks(r.k)
		}
		if why != "" && r.Watch.Considered != nil {
			why = "the device lacks " + why
		}
		if why == "" && v.unfit != nil {
			why = v.unfit(r, a)
		}
		if r.Watch.Considered != nil {
			r.Watch.Considered(&v.Rule, why)
		}
		if why == "" {
			return v
		}
	}
	if r.Watch.Considered != nil {
		r.Watch.Considered(nil, "")
	}
	return nil
}

// recordBy records a by the first variant that fits; done is false, and nothing is recorded, if none does.
func recordBy[A any](r *Recorder, list []*variant[A], a *A) (done bool, err error) {
	v := choose(r, list, a)
	if v == nil {
		return false, nil
	}
	return true, v.record(r, a)
}

// opArgs holds the arguments of the op being recorded, one field for each kind of op with variants. Arguments of a function value would escape to the heap, and
// steps must not allocate.
type opArgs struct {
	products Products
	roped    RopedProducts
	experts  ExpertProducts
	attn     Attention
	norm     Norm
	glu      GatedRows
	rope     RopeAppend
	topK     shaders.TopKMoEArgs
	routed   RoutedTopK
	argmax   shaders.ArgmaxArgs
}

// failedTest is the reason why a variant does not fit if one of its kernels failed the self-test or crashed the driver.
const failedTest = "a kernel of it failed its self-test"

// rulesOf lists the rules of variants.
func rulesOf[A any](list []*variant[A]) (rules []*Rule) {
	for _, v := range list {
		rules = append(rules, &v.Rule)
	}
	return rules
}

// Rules lists the rules of all ops that have several variants, or that no variant computes for some arguments. For each op the first variant that fits is used.
func Rules() []*Rule {
	return slices.Concat(rulesOf(ropedVariants), rulesOf(productVariants), rulesOf(expertVariants), rulesOf(attnVariants),
		rulesOf(normVariants), rulesOf(gluVariants), rulesOf(ropeVariants), rulesOf(routedVariants), rulesOf(topKVariants), rulesOf(argmaxVariants))
}

// Device features that variants need, in words, for [Rule].Needs.
const (
	needsSubgroups = "subgroup arithmetic"                                                                       // see lacksSubgroups
	needsBytes     = "packed dot products of bytes, subgroup arithmetic"                                         // see lacksBytes
	needsMatrices  = "cooperative matrices 16 x 16 x 16 of halves, subgroup arithmetic, 32 KiB of shared memory" // see lacksMatrix
)

// lacksBytes says what the device lacks for int8 products and other kernels of steps to decode, "" if nothing.
func lacksBytes(k *Kernels) string {
	switch subgroups := lacksSubgroups(k); {
	case k.can.few:
		return ""
	case subgroups == "":
		return "dot products of bytes"
	case k.dev.Features.IntDotProduct:
		return subgroups
	}
	return "dot products of bytes and subgroup arithmetic"
}

// lacksSubgroups says what the device lacks for kernels with subgroups, "" if nothing.
func lacksSubgroups(k *Kernels) string {
	if !k.dev.Features.SubgroupArithmetic || k.dev.Physical.Limits.Subgroup < minSubgroup {
		return "subgroup arithmetic"
	}
	return ""
}

// lacksMatrix says what the device lacks for kernels with cooperative matrices, "" if nothing.
func lacksMatrix(k *Kernels) string {
	if k.can.matrix == 0 {
		return "cooperative matrices of 16 x 16 x 16 halves"
	}
	return ""
}

// Choice says whether a device can use the variant of a rule.
type Choice struct {
	*Rule
	Lacks  string   // what the device lacks for the variant; "": nothing
	Failed []string // names of the variant's kernels that failed their self-test or crashed the driver, so are not used
}

// Choices lists, for all rules, what the device lacks and which kernels failed.
func (k *Kernels) Choices() []Choice {
	var all []Choice
	failed := k.guard.failed()
	results, _ := k.Tested()
	for _, t := range results {
		if t.Error != "" {
			failed[t.Kernel] = t.Error
		}
	}
	for _, r := range Rules() {
		c := Choice{Rule: r}
		if r.lacks != nil {
			c.Lacks = r.lacks(k)
		}
		for _, name := range slices.Sorted(maps.Keys(failed)) {
			if slices.ContainsFunc(r.kernels, func(of string) bool { return name == of || strings.HasPrefix(name, of+"_") }) {
				c.Failed = append(c.Failed, name)
			}
		}
		all = append(all, c)
	}
	return all
}
