package kernels

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Gates of rows to decode go by workgroups that stay, on a device that runs many side by side, however many rows share the step.
func TestPersistentGates(t *testing.T) {
	physical := &vk.PhysicalDevice{Type: vk.Discrete, Limits: vk.Limits{MaxWorkgroupInvocations: 1024, Subgroup: 32}}
	device := func(f vk.Features) *Kernels {
		f.IntDotProduct, f.SubgroupArithmetic = true, true
		return &Kernels{dev: &vk.Device{Physical: physical, Features: f}, can: abilities{few: true}}
	}
	gates := func(of gguf.Type, n, k uint32) Products {
		const m = 1024
		return Products{Type: of, GLU: true, N: n, K: k, XStride: k, Of: [3]Matrix{{M: m}, {M: m}}, DstStride: m}
	}
	plain := gates(gguf.Q4_K, 1, 4096)
	plain.GLU = false
	stays, measured := device(vk.Features{Persistent: true}), device(vk.Features{Persistent: true})
	measured.tuned.Store(&tuned{products: map[tunedProductKey]TunedProduct{{gguf.Q4_K, 8192, true}: {Tile: Tile{Rows: 2, Team: 32, Unroll: 1, Lanes: 256}}}})
	for _, c := range []struct {
		name string
		k    *Kernels
		p    Products
		role Role
		tile Tile
		want string
	}{
		{"Q4_K", stays, gates(gguf.Q4_K, 1, 8192), Decode, Tile{}, shaders.Persistent},
		{"as many rows as a step has", stays, gates(gguf.Q6_K, shaders.FewRows, 8192), Decode, Tile{}, shaders.Persistent},
		{"the longest rows", stays, gates(gguf.Q5_K, 1, 32768), Decode, Tile{}, shaders.Persistent},
		{"longer rows", stays, gates(gguf.Q5_K, 1, 33024), Decode, Tile{}, shaders.Int8},
		{"another type", stays, gates(gguf.Q8_0, 1, 8192), Decode, Tile{}, shaders.Int8},
		{"no gates", stays, plain, Decode, Tile{}, shaders.Int8},
		{"rows of a prompt", stays, gates(gguf.Q4_K, 8, 8192), Prompt, Tile{}, shaders.Int8},
		{"a tile of the recorder's", stays, gates(gguf.Q4_K, 1, 8192), Decode, Tile{Team: 64}, shaders.Int8},
		{"a tuned tile", measured, gates(gguf.Q4_K, 1, 8192), Decode, Tile{}, shaders.Int8},
		{"without the feature", device(vk.Features{}), gates(gguf.Q4_K, 1, 8192), Decode, Tile{}, shaders.Int8},
	} {
		r := &Recorder{k: c.k, Rows: Rows{Role: c.role}, Override: Overrides{Tile: c.tile}, Memory: Memory{Q8: Scratch{Bytes: 1 << 24}}}
		if got := ProductVariant(r, &c.p); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// All workgroups have as many turns, or one less.
func TestPersistentWorkgroups(t *testing.T) {
	for _, c := range []struct{ places, most, want uint64 }{{0, 528, 0}, {1, 528, 1}, {528, 528, 528}, {529, 528, 265}, {1000, 528, 500}, {11, 5, 4}} {
		if got := persistentWorkgroups(c.places, c.most); got != c.want {
			t.Errorf("%d places, at most %d workgroups: %d, want %d", c.places, c.most, got, c.want)
		}
	}
}
