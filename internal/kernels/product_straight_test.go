package kernels

import (
	"testing"

	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// What is written for a CPU's subgroups is neither run nor tested elsewhere: a GPU would fail what it is never to do.
func TestStraightElsewhere(t *testing.T) {
	dev := vktest.Open(t)
	k, err := New(dev, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	was := *dev.Physical
	defer func() { *dev.Physical = was }()
	cpu := was.Type == vk.CPU && was.Limits.Subgroup == straightSubgroup
	others := 0
	for _, row := range shaders.Kernels() {
		if row.Variant != shaders.Straight {
			continue
		}
		*dev.Physical = was
		here := k.CanRun(&row)
		dev.Physical.Type = vk.Discrete
		gpu := k.CanRun(&row)
		dev.Physical.Type, dev.Physical.Limits.Subgroup = vk.CPU, 4*straightSubgroup
		if wide := k.CanRun(&row); gpu || wide || here && !cpu {
			t.Errorf("%s can run on a GPU: %v, in subgroups of 32: %v, here: %v", row.Name, gpu, wide, here)
		}
		others++
	}
	if others == 0 {
		t.Error("there is no such kernel")
	}
}
