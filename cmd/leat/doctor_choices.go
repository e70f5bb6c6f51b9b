package main

import (
	"fmt"
	"text/tabwriter"

	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/internal/record"
	"leat/internal/selftest"
	"leat/vk"
)

// choiceReport is the variant by which operations of a model are recorded, and why.
type choiceReport struct {
	Op      string         `json:"op"`              // its weights, or its kind
	Types   string         `json:"types,omitempty"` // of the weights
	Layers  int            `json:"layers"`          // that have such operations; 0: it is after the layers
	Class   string         `json:"class"`           // "prompt", "decode": the role of the rows
	Variant string         `json:"variant"`         // kernel_variant; "": none computes it as one, its parts follow
	When    string         `json:"when,omitempty"`
	Passed  []passedReport `json:"passed"` // better variants that don't fit
}

// passedReport is a variant that does not fit.
type passedReport struct {
	Variant string `json:"variant"`
	Why     string `json:"why"`
}

// explainedRows is how many rows the prompt has that kernels are explained for.
const explainedRows = 512

// explainKernels prints by which kernels a device runs a model, and why not by others: nothing is computed, and no weights are read.
func (a *app) explainKernels(model, device string, asJSON bool) error {
	m, path, err := openModel(model)
	if err != nil {
		return err
	}
	defer m.Close()
	h, err := arch.Read(m)
	if err != nil {
		return err
	}
	instance, err := vk.Open(a.vulkan())
	if err != nil {
		return err
	}
	defer instance.Close()
	p, err := instance.Pick(device)
	if err != nil {
		return err
	}
	dev, err := instance.NewDevice(p, vk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer dev.Close()
	all, err := kernels.New(dev, kernels.Options{Logger: a.log, Cache: a.cacheFolder(), Test: selftest.Prove})
	if err != nil {
		return err
	}
	defer all.Close()
	whole, err := plan.Make(h, m, plan.Budget{
		DeviceBytes: 1 << 50, HostBytes: 1 << 40, ContextLength: min(arch.LongestContext(h), 4096), Chunk: explainedRows, KVType: gguf.F16, // as models run by default
		Matrices: kernels.PromptsUseMatrices(dev.Physical, dev.Features), FewRowKernels: kernels.HasFewRowKernels(dev.Physical, dev.Features),
	})
	if err != nil {
		return err
	}
	choices, err := record.Explain(m, h, whole, all, explainedRows)
	if err != nil {
		return fmt.Errorf("explain %s: %w", path, err)
	}
	reports := []choiceReport{}
	for i := range choices {
		reports = append(reports, reportChoice(&choices[i]))
	}
	if asJSON {
		return a.printJSON(reports)
	}
	return a.printChoices(reports, p.Name)
}

func reportChoice(c *record.Choice) choiceReport {
	r := choiceReport{Op: c.What, Types: c.Weights, Layers: c.Layers, Class: "prompt", Passed: []passedReport{}}
	if c.Role == kernels.Decode {
		r.Class = "decode"
	}
	if c.Rule != nil {
		r.Variant, r.When = variantName(c.Rule), c.Rule.When
	}
	for _, p := range c.Passed {
		r.Passed = append(r.Passed, passedReport{variantName(p.Rule), p.Why})
	}
	return r
}

func variantName(r *kernels.Rule) string { return r.Op + "_" + r.Variant }

// printChoices prints a table: a line for each choice, then one for each better variant that does not fit.
func (a *app) printChoices(reports []choiceReport, device string) error {
	fmt.Fprintf(a.out, "Kernels for prompts of %d rows and for decoding on %s\n\n", explainedRows, device)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "op\tlayers\tclass\tvariant\treason")
	for _, r := range reports {
		layers, variant, why := fmt.Sprint(r.Layers), r.Variant, r.When
		if r.Layers == 0 {
			layers = "-"
		}
		switch {
		case variant == "":
			variant, why = "-", "no variant computes it as one: its parts follow"
		case why == "":
			why = "always fits"
		}
		op := r.Op
		if r.Types != "" {
			op += " (" + r.Types + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", op, layers, r.Class, variant, why)
		for _, p := range r.Passed {
			fmt.Fprintf(w, "\t\t\tnot %s:\t%s\n", p.Variant, p.Why)
		}
	}
	return w.Flush()
}
