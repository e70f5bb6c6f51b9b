package vk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"leat/vk/internal/raw"
)

// PipelineOptions says what to make of a compute shader, whose entry is main.
type PipelineOptions struct {
	Name         string // for errors and tools
	SPIRV        []byte
	PushBytes    int            // size of the push constants, a multiple of 4
	Spec         []uint32       // specialisation constants with constant_id 0, 1, 2…
	SubgroupSize int            // asked for where SubgroupSizeControl is on and allows it; 0: the driver's choice
	Cache        *PipelineCache // what was compiled before, and will be; nil: none
}

// Pipeline is a shader ready to dispatch.
type Pipeline struct {
	Name         string
	PushBytes    int
	SubgroupSize int // as granted; 0: the driver's choice

	dev    *Device
	layout raw.PipelineLayout
	handle raw.Pipeline
}

const spirvMagic = 0x07230203

// NewPipeline compiles a shader for the device.
func (d *Device) NewPipeline(o PipelineOptions) (*Pipeline, error) {
	p := &Pipeline{Name: o.Name, PushBytes: o.PushBytes, dev: d}
	err := p.checkOptions(o)
	if err == nil {
		err = p.createLayout()
	}
	if err == nil {
		err = p.compile(o)
	}
	if err != nil {
		p.destroy()
		return nil, fmt.Errorf("make pipeline %q: %w", o.Name, err)
	}
	d.nameObject(raw.ObjectTypePipeline, uint64(p.handle), o.Name)
	d.nameObject(raw.ObjectTypePipelineLayout, uint64(p.layout), o.Name)
	d.adopt(p)
	return p, nil
}

func (p *Pipeline) checkOptions(o PipelineOptions) error {
	if len(o.SPIRV) < 20 || len(o.SPIRV)%4 != 0 || binary.LittleEndian.Uint32(o.SPIRV) != spirvMagic {
		return errors.New("its shader is not SPIR-V")
	}
	limit := min(p.dev.Physical.Limits.MaxPushConstants, len(commandBlock{}.push))
	if o.PushBytes < 0 || o.PushBytes%4 != 0 || o.PushBytes > limit {
		return fmt.Errorf("%d bytes of push constants: want a multiple of 4, at most %d", o.PushBytes, limit)
	}
	if l := p.dev.Physical.Limits; p.dev.Features.SubgroupSizeControl && o.SubgroupSize >= l.SubgroupMin && o.SubgroupSize <= l.SubgroupMax {
		p.SubgroupSize = o.SubgroupSize
	}
	return nil
}

func (p *Pipeline) createLayout() error {
	info := &raw.PipelineLayoutCreateInfo{SType: raw.StructureTypePipelineLayoutCreateInfo}
	if p.PushBytes > 0 {
		info.PushConstantRangeCount = 1
		info.PPushConstantRanges = &raw.PushConstantRange{StageFlags: raw.ShaderStageComputeBit, Size: uint32(p.PushBytes)}
	}
	d := p.dev
	return d.call("vkCreatePipelineLayout", "", func() Result { return d.fn.CreatePipelineLayout(d.handle, info, nil, &p.layout) })
}

func (p *Pipeline) compile(o PipelineOptions) error {
	code := make([]uint32, len(o.SPIRV)/4)
	for i := range code {
		code[i] = binary.LittleEndian.Uint32(o.SPIRV[4*i:])
	}
	d := p.dev
	var module raw.ShaderModule
	info := &raw.ShaderModuleCreateInfo{SType: raw.StructureTypeShaderModuleCreateInfo, CodeSize: uintptr(len(o.SPIRV)), PCode: &code[0]}
	if err := d.call("vkCreateShaderModule", "", func() Result { return d.fn.CreateShaderModule(d.handle, info, nil, &module) }); err != nil {
		return err
	}
	defer d.fn.DestroyShaderModule(d.handle, module, nil)
	d.nameObject(raw.ObjectTypeShaderModule, uint64(module), o.Name)

	stage := raw.PipelineShaderStageCreateInfo{
		SType:               raw.StructureTypePipelineShaderStageCreateInfo,
		Stage:               raw.ShaderStageComputeBit,
		Module:              module,
		PName:               raw.CString("main"),
		PSpecializationInfo: specialization(o.Spec),
	}
	if p.SubgroupSize > 0 {
		stage.PNext = raw.Ptr(&raw.PipelineShaderStageRequiredSubgroupSizeCreateInfo{
			SType:                raw.StructureTypePipelineShaderStageRequiredSubgroupSizeCreateInfo,
			RequiredSubgroupSize: uint32(p.SubgroupSize),
		})
	}
	create := &raw.ComputePipelineCreateInfo{
		SType:  raw.StructureTypeComputePipelineCreateInfo,
		Stage:  stage,
		Layout: p.layout,
	}
	if p.dev.Features.Inspect {
		create.Flags = raw.PipelineCreateCaptureStatisticsBitKHR | raw.PipelineCreateCaptureInternalRepresentationsBitKHR
	}
	var cache raw.PipelineCache
	if o.Cache != nil {
		o.Cache.mu.RLock()
		defer o.Cache.mu.RUnlock()
		cache = o.Cache.handle
	}
	return d.call("vkCreateComputePipelines", "", func() Result { return d.fn.CreateComputePipelines(d.handle, cache, 1, create, nil, &p.handle) })
}

// specialization sets constant_id i to spec[i].
func specialization(spec []uint32) *raw.SpecializationInfo {
	if len(spec) == 0 {
		return nil
	}
	data := make([]uint32, len(spec)) // ours for as long as the driver reads it
	copy(data, spec)
	entries := make([]raw.SpecializationMapEntry, len(spec))
	for i := range entries {
		entries[i] = raw.SpecializationMapEntry{ConstantID: uint32(i), Offset: uint32(4 * i), Size: 4}
	}
	return &raw.SpecializationInfo{
		MapEntryCount: uint32(len(entries)),
		PMapEntries:   &entries[0],
		DataSize:      uintptr(4 * len(data)),
		PData:         raw.Ptr(&data[0]),
	}
}

// Close frees the pipeline. No submission that uses it may be running.
func (p *Pipeline) Close() { p.dev.release(p) }

func (p *Pipeline) label() string { return fmt.Sprintf("pipeline %q", p.Name) }

func (p *Pipeline) destroy() {
	p.dev.fn.DestroyPipeline(p.dev.handle, p.handle, nil)
	p.dev.fn.DestroyPipelineLayout(p.dev.handle, p.layout, nil)
}
