package arch

import (
	"fmt"
	"slices"
	"strings"

	"leat/decompose/pack"
)

// noteUsual adds notes to h about keys and tensors that the file lacks although other files of the architecture have them, and that change the logits: the file may have
// lost them. usual and usualInGroup list such keys and tensors.
func noteUsual(k *keys, h *Hyper, m *pack.Model) {
	names := slices.Clone(usual[k.arch])
	for _, name := range usualInGroup[k.arch] {
		if hasAny(k, Group(name)) {
			names = append(names, name)
		}
	}
	if kind := "rope.scaling.type"; hasAny(k, "rope.scaling.yarn_") && !slices.Contains(names, kind) { // without it they mean nothing
		names = append(names, kind)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".weight") || strings.HasSuffix(name, ".bias") {
			if !m.Has(name) {
				h.Notes = append(h.Notes, fmt.Sprintf("tensor %q is missing, which other files of %s have", name, k.arch))
			}
			continue
		}
		key := k.arch + "." + name
		if _, found := k.md.Get(key); found {
			continue
		}
		note := fmt.Sprintf("key %q is missing, which other files of %s have", key, k.arch)
		if v, known := k.assumed[key]; known {
			note += fmt.Sprintf(": %v is assumed", v)
		}
		h.Notes = append(h.Notes, note)
	}
}

// Group is the prefix that a key shares with others that files have only together, such as rope.scaling. for rope.scaling.factor; "": the key has no such others. name is
// the key without the architecture.
func Group(name string) string {
	for _, prefix := range []string{"expert_", "rope.scaling."} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}
