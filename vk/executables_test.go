package vk

import (
	"reflect"
	"testing"

	"leat/vk/internal/raw"
)

// talker is a driver that tells of two executables, the first with two statistics and two texts.
type talker struct{ refuses bool }

func (t talker) GetPipelineExecutablePropertiesKHR(_ raw.Device, info *raw.PipelineInfoKHR, n *uint32, out *raw.PipelineExecutablePropertiesKHR) raw.Result {
	if t.refuses || info.SType != raw.StructureTypePipelineInfoKHR || info.Pipeline != 7 {
		return raw.ErrorOutOfHostMemory
	}
	if *n = 2; out != nil {
		copy(out.Name[:], "compute\x00")
		copy(out.Description[:], "what it does\x00")
		out.SubgroupSize = 32
	}
	return raw.Success
}

func (talker) GetPipelineExecutableStatisticsKHR(_ raw.Device, which *raw.PipelineExecutableInfoKHR, n *uint32, out *raw.PipelineExecutableStatisticKHR) raw.Result {
	if *n = 1 - which.ExecutableIndex; out != nil {
		copy(out.Name[:], "Registers\x00")
		out.Format, out.Value[0] = raw.PipelineExecutableStatisticFormatUint64KHR, 168
	}
	return raw.Success
}

func (talker) GetPipelineExecutableInternalRepresentationsKHR(_ raw.Device, which *raw.PipelineExecutableInfoKHR, n *uint32, out *raw.PipelineExecutableInternalRepresentationKHR) raw.Result {
	const text = "RET;\n\x00"
	if *n = 1 - which.ExecutableIndex; out == nil {
		return raw.Success
	}
	copy(out.Name[:], "Assembly\x00")
	out.IsText = raw.True
	if out.PData != nil {
		copy(raw.Slice(out.PData, int64(out.DataSize)), text)
	}
	out.DataSize = uintptr(len(text))
	return raw.Success
}

func TestExecutables(t *testing.T) {
	p := &Pipeline{Name: "probe", dev: &Device{}, handle: 7}
	got, err := p.executables(talker{})
	want := []Executable{
		{Name: "compute", Description: "what it does", SubgroupSize: 32, Statistics: []Statistic{{"Registers", "", "168"}}, Texts: []Text{{Name: "Assembly", Data: []byte("RET;\n")}}},
		{Statistics: []Statistic{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := p.executables(talker{refuses: true}); err == nil {
		t.Errorf("of a driver that fails %v, want an error", got)
	}
	if got, err := p.Executables(); got != nil || err != nil {
		t.Errorf("of a device that was not opened for it %v, %v, want nothing", got, err)
	}
}

func TestStatisticValue(t *testing.T) {
	for _, c := range []struct {
		format raw.PipelineExecutableStatisticFormatKHR
		bits   uint64
		want   string
	}{
		{raw.PipelineExecutableStatisticFormatBool32KHR, 0xdead_0000_0001, "true"}, // the upper half is nobody's
		{raw.PipelineExecutableStatisticFormatBool32KHR, 0xdead_0000_0000, "false"},
		{raw.PipelineExecutableStatisticFormatInt64KHR, ^uint64(0), "-1"},
		{raw.PipelineExecutableStatisticFormatUint64KHR, ^uint64(0), "18446744073709551615"},
		{raw.PipelineExecutableStatisticFormatFloat64KHR, 0x3fe8000000000000, "0.75"},
	} {
		if got := statisticValue(c.format, c.bits); got != c.want {
			t.Errorf("format %d, bits %#x: %q, want %q", c.format, c.bits, got, c.want)
		}
	}
}
