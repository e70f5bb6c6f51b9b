package vk

import (
	"fmt"
	"math"
	"strconv"

	"leat/vk/internal/raw"
)

// Executable is what the driver made of a pipeline, or of a part of it, in its own words.
type Executable struct {
	Name, Description string
	SubgroupSize      int         // 0: it does not say
	Statistics        []Statistic // in the driver's order
	Texts             []Text      // the stages of the compile: an assembler's text, say; often none
}

// Statistic is a number that the driver tells: registers, bytes of scratch memory, …
type Statistic struct{ Name, Description, Value string }

// Text is the code at one of the driver's stages. Data that is no text is left as it is.
type Text struct {
	Name, Description string
	Data              []byte
	Binary            bool
}

// inspector has Vulkan's commands that tell; a test has its own.
type inspector interface {
	GetPipelineExecutablePropertiesKHR(raw.Device, *raw.PipelineInfoKHR, *uint32, *raw.PipelineExecutablePropertiesKHR) raw.Result
	GetPipelineExecutableStatisticsKHR(raw.Device, *raw.PipelineExecutableInfoKHR, *uint32, *raw.PipelineExecutableStatisticKHR) raw.Result
	GetPipelineExecutableInternalRepresentationsKHR(raw.Device, *raw.PipelineExecutableInfoKHR, *uint32, *raw.PipelineExecutableInternalRepresentationKHR) raw.Result
}

// Executables tells what the driver made of the pipeline. Of a device that was opened without DeviceOptions.Inspect, or whose
// driver does not say, there are none.
func (p *Pipeline) Executables() ([]Executable, error) {
	if !p.dev.Features.Inspect {
		return nil, nil
	}
	list, err := p.executables(p.dev.fn)
	if err != nil {
		return nil, fmt.Errorf("inspect pipeline %q: %w", p.Name, err)
	}
	return list, nil
}

func (p *Pipeline) executables(fn inspector) ([]Executable, error) {
	d := p.dev
	var props []raw.PipelineExecutablePropertiesKHR
	info := &raw.PipelineInfoKHR{SType: raw.StructureTypePipelineInfoKHR, Pipeline: p.handle}
	err := d.filled("vkGetPipelineExecutablePropertiesKHR", func(n uint32) {
		props = make([]raw.PipelineExecutablePropertiesKHR, n)
		for i := range props {
			props[i].SType = raw.StructureTypePipelineExecutablePropertiesKHR
		}
	}, func(n *uint32) raw.Result {
		_, at := first(props)
		return fn.GetPipelineExecutablePropertiesKHR(d.handle, info, n, at)
	})
	if err != nil {
		return nil, err
	}
	list := make([]Executable, len(props))
	for i := range props {
		e := &list[i]
		*e = Executable{Name: raw.GoString(&props[i].Name[0]), Description: raw.GoString(&props[i].Description[0]), SubgroupSize: int(props[i].SubgroupSize)}
		which := &raw.PipelineExecutableInfoKHR{SType: raw.StructureTypePipelineExecutableInfoKHR, Pipeline: p.handle, ExecutableIndex: uint32(i)}
		if e.Statistics, err = d.statistics(fn, which); err == nil {
			e.Texts, err = d.texts(fn, which)
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (d *Device) statistics(fn inspector, which *raw.PipelineExecutableInfoKHR) ([]Statistic, error) {
	var found []raw.PipelineExecutableStatisticKHR
	err := d.filled("vkGetPipelineExecutableStatisticsKHR", func(n uint32) {
		found = make([]raw.PipelineExecutableStatisticKHR, n)
		for i := range found {
			found[i].SType = raw.StructureTypePipelineExecutableStatisticKHR
		}
	}, func(n *uint32) raw.Result {
		_, at := first(found)
		return fn.GetPipelineExecutableStatisticsKHR(d.handle, which, n, at)
	})
	list := make([]Statistic, len(found))
	for i := range found {
		f := &found[i]
		list[i] = Statistic{raw.GoString(&f.Name[0]), raw.GoString(&f.Description[0]), statisticValue(f.Format, f.Value[0])}
	}
	return list, err
}

// statisticValue writes the value of a union of 64 bits.
func statisticValue(f raw.PipelineExecutableStatisticFormatKHR, bits uint64) string {
	switch f {
	case raw.PipelineExecutableStatisticFormatBool32KHR:
		return strconv.FormatBool(raw.Bool32(bits).Bool())
	case raw.PipelineExecutableStatisticFormatInt64KHR:
		return strconv.FormatInt(int64(bits), 10)
	case raw.PipelineExecutableStatisticFormatFloat64KHR:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	}
	return strconv.FormatUint(bits, 10)
}

// texts asks three times: how many there are, how long each is, and for what they hold.
func (d *Device) texts(fn inspector, which *raw.PipelineExecutableInfoKHR) ([]Text, error) {
	const call = "vkGetPipelineExecutableInternalRepresentationsKHR"
	var found []raw.PipelineExecutableInternalRepresentationKHR
	get := func(n *uint32) raw.Result {
		_, at := first(found)
		return fn.GetPipelineExecutableInternalRepresentationsKHR(d.handle, which, n, at)
	}
	err := d.filled(call, func(n uint32) {
		found = make([]raw.PipelineExecutableInternalRepresentationKHR, n)
		for i := range found {
			found[i].SType = raw.StructureTypePipelineExecutableInternalRepresentationKHR
		}
	}, get)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	list, n := make([]Text, len(found)), uint32(len(found))
	for i := range found {
		if size := found[i].DataSize; size > 0 {
			list[i].Data = make([]byte, size)
			found[i].PData = raw.Ptr(&list[i].Data[0])
		}
	}
	if err := d.call(call, "", func() Result { return get(&n) }); err != nil {
		return nil, err
	}
	for i := range list {
		f := &found[i]
		list[i].Name, list[i].Description = raw.GoString(&f.Name[0]), raw.GoString(&f.Description[0])
		list[i].Data, list[i].Binary = list[i].Data[:min(int(f.DataSize), len(list[i].Data))], !f.IsText.Bool()
		if m := len(list[i].Data); m > 0 && !list[i].Binary && list[i].Data[m-1] == 0 {
			list[i].Data = list[i].Data[:m-1] // C's
		}
	}
	return list, nil
}

// filled asks for a count, has room made for so many, and asks for them. What a pipeline has does not grow.
func (d *Device) filled(call string, room func(n uint32), ask func(n *uint32) raw.Result) error {
	var n uint32
	if err := d.call(call, "", func() Result { return ask(&n) }); err != nil || n == 0 {
		return err
	}
	room(n)
	return d.call(call, "", func() Result { return ask(&n) })
}
