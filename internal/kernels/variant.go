package kernels

import (
	"maps"
	"slices"
	"strings"

	"leat/shaders"
)

// Rule says of a variant of an op what it needs of a device and when it runs, in words: docs/kernels.md and leat doctor print it.
type Rule struct {
	Op, Variant string                  // as in the shaders' table
	When        string                  // role, shapes and types; "": always
	Needs       string                  // of the device, in words; "": nothing
	lacks       func(k *Kernels) string // what the device has not got of it; nil: it needs nothing
	kernels     []string                // rows of the table that it can't do without, up to their types
}

// variant is one way to record an op that is asked for by an A.
type variant[A any] struct {
	Rule
	unfit  func(r *Recorder, a *A) string // why it can't, or should not, record a; "": it fits. Constant text: every step asks
	record func(r *Recorder, a *A) error
}

// choose returns the first variant that the device can run and that fits; nil: none does.
func choose[A any](r *Recorder, list []*variant[A], a *A) *variant[A] {
	for _, v := range list {
		why := ""
		if v.lacks != nil {
			why = v.lacks(r.k)
		}
		if why != "" && r.Considered != nil {
			why = "the device lacks " + why
		}
		if why == "" && v.unfit != nil {
			why = v.unfit(r, a)
		}
		if r.Considered != nil {
			r.Considered(&v.Rule, why)
		}
		if why == "" {
			return v
		}
	}
	if r.Considered != nil {
		r.Considered(nil, "")
	}
	return nil
}

// recordBy records by the first variant that fits; done is false where none does.
func recordBy[A any](r *Recorder, list []*variant[A], a *A) (done bool, err error) {
	v := choose(r, list, a)
	if v == nil {
		return false, nil
	}
	return true, v.record(r, a)
}

// asked holds what variants are asked for: what a function value is given escapes, and steps must not allocate.
type asked struct {
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

// failedTest is why a variant does not fit whose kernel computes wrong on the device, or crashed its driver.
const failedTest = "a kernel of it failed its self-test"

// rulesOf are the rules of variants.
func rulesOf[A any](list []*variant[A]) (rules []*Rule) {
	for _, v := range list {
		rules = append(rules, &v.Rule)
	}
	return rules
}

// Rules are those of all ops that have more than one variant; of an op's rules the first that holds is taken.
func Rules() []*Rule {
	return slices.Concat(rulesOf(ropedVariants), rulesOf(productVariants), rulesOf(expertVariants), rulesOf(attnVariants),
		rulesOf(normVariants), rulesOf(gluVariants), rulesOf(ropeVariants), rulesOf(routedVariants), rulesOf(topKVariants), rulesOf(argmaxVariants))
}

// What variants need of a device, in words.
const (
	needsSubgroups = "subgroup arithmetic"
	needsBytes     = "packed dot products of bytes, subgroup arithmetic"
	needsMatrices  = "cooperative matrices 16 x 16 x 16 of halves, subgroup arithmetic, 40 KiB of shared memory"
)

// lacksBytes is for kernels of products with bytes, and others that steps to decode have.
func lacksBytes(k *Kernels) string {
	switch subgroups := lacksSubgroups(k); {
	case k.few:
		return ""
	case subgroups == "":
		return "dot products of bytes"
	case k.dev.Features.IntDotProduct:
		return subgroups
	}
	return "dot products of bytes and subgroup arithmetic"
}

func lacksSubgroups(k *Kernels) string {
	if !k.dev.Features.SubgroupArithmetic || k.dev.Physical.Limits.Subgroup < minSubgroup {
		return "subgroup arithmetic"
	}
	return ""
}

func lacksMatrix(k *Kernels) string {
	if k.matrix == 0 {
		return "cooperative matrices of 16 x 16 x 16 halves"
	}
	return ""
}

// Choice is a rule on a device.
type Choice struct {
	*Rule
	Lacks  string   // what the device lacks for it; "": nothing
	Failed []string // names of its kernels that failed their self-test or crashed the driver: others are used in their place
}

// Choices lists all rules and what the device makes of them.
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
