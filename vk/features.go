package vk

import (
	"fmt"
	"slices"

	"leat/vk/internal/raw"
)

// Extensions we use where they are. We ask for Vulkan 1.2, so what 1.3 made
// core is an extension to us too; drivers keep offering these.
const (
	extSubgroupSize   = "VK_EXT_subgroup_size_control"
	extIntDot         = "VK_KHR_shader_integer_dot_product"
	extSync2          = "VK_KHR_synchronization2"
	extCoopMatrix     = "VK_KHR_cooperative_matrix"
	extCoopMatrix2    = "VK_NV_cooperative_matrix2"
	extMemoryBudget   = "VK_EXT_memory_budget"
	extMemoryPriority = "VK_EXT_memory_priority"
	extPageable       = "VK_EXT_pageable_device_local_memory"
	extHostImport     = "VK_EXT_external_memory_host"
	extCalibrated     = "VK_EXT_calibrated_timestamps"
	extCalibratedKHR  = "VK_KHR_calibrated_timestamps" // its newer name
	extExecutables    = "VK_KHR_pipeline_executable_properties"
	extConditional    = "VK_EXT_conditional_rendering"
	extPortabilitySub = "VK_KHR_portability_subset"
)

// The first specifications with extCoopMatrix and extCoopMatrix2, the extensions here that validation layers in the
// field are too old for.
var coopMatrixSince, flexMatrixSince = MakeVersion(1, 3, 255), MakeVersion(1, 4, 303)

// featureChain is the chain of feature structs, used both to ask what a device
// has and to turn on what we want: Vulkan reads and writes the same structs.
type featureChain struct {
	core     *raw.PhysicalDeviceFeatures2
	v11      *raw.PhysicalDeviceVulkan11Features
	v12      *raw.PhysicalDeviceVulkan12Features
	size     *raw.PhysicalDeviceSubgroupSizeControlFeatures
	dot      *raw.PhysicalDeviceShaderIntegerDotProductFeatures
	sync2    *raw.PhysicalDeviceSynchronization2Features
	coop     *raw.PhysicalDeviceCooperativeMatrixFeaturesKHR
	coop2    *raw.PhysicalDeviceCooperativeMatrix2FeaturesNV
	priority *raw.PhysicalDeviceMemoryPriorityFeaturesEXT
	pageable *raw.PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT
	inspect  *raw.PhysicalDevicePipelineExecutablePropertiesFeaturesKHR
	cond     *raw.PhysicalDeviceConditionalRenderingFeaturesEXT
}

// newFeatureChain links the structs of the extensions for which has says yes.
func newFeatureChain(has func(ext string) bool) *featureChain {
	c := &featureChain{
		core:     &raw.PhysicalDeviceFeatures2{SType: raw.StructureTypePhysicalDeviceFeatures2},
		v11:      &raw.PhysicalDeviceVulkan11Features{SType: raw.StructureTypePhysicalDeviceVulkan11Features},
		v12:      &raw.PhysicalDeviceVulkan12Features{SType: raw.StructureTypePhysicalDeviceVulkan12Features},
		size:     &raw.PhysicalDeviceSubgroupSizeControlFeatures{SType: raw.StructureTypePhysicalDeviceSubgroupSizeControlFeatures},
		dot:      &raw.PhysicalDeviceShaderIntegerDotProductFeatures{SType: raw.StructureTypePhysicalDeviceShaderIntegerDotProductFeatures},
		sync2:    &raw.PhysicalDeviceSynchronization2Features{SType: raw.StructureTypePhysicalDeviceSynchronization2Features},
		coop:     &raw.PhysicalDeviceCooperativeMatrixFeaturesKHR{SType: raw.StructureTypePhysicalDeviceCooperativeMatrixFeaturesKHR},
		coop2:    &raw.PhysicalDeviceCooperativeMatrix2FeaturesNV{SType: raw.StructureTypePhysicalDeviceCooperativeMatrix2FeaturesNV},
		priority: &raw.PhysicalDeviceMemoryPriorityFeaturesEXT{SType: raw.StructureTypePhysicalDeviceMemoryPriorityFeaturesEXT},
		pageable: &raw.PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT{SType: raw.StructureTypePhysicalDevicePageableDeviceLocalMemoryFeaturesEXT},
		inspect:  &raw.PhysicalDevicePipelineExecutablePropertiesFeaturesKHR{SType: raw.StructureTypePhysicalDevicePipelineExecutablePropertiesFeaturesKHR},
		cond:     &raw.PhysicalDeviceConditionalRenderingFeaturesEXT{SType: raw.StructureTypePhysicalDeviceConditionalRenderingFeaturesEXT},
	}
	c.core.PNext, c.v11.PNext = raw.Ptr(c.v11), raw.Ptr(c.v12)
	tail := &c.v12.PNext
	if has(extSubgroupSize) {
		*tail, tail = raw.Ptr(c.size), &c.size.PNext
	}
	if has(extIntDot) {
		*tail, tail = raw.Ptr(c.dot), &c.dot.PNext
	}
	if has(extSync2) {
		*tail, tail = raw.Ptr(c.sync2), &c.sync2.PNext
	}
	if has(extCoopMatrix) {
		*tail, tail = raw.Ptr(c.coop), &c.coop.PNext
	}
	if has(extCoopMatrix2) {
		*tail, tail = raw.Ptr(c.coop2), &c.coop2.PNext
	}
	if has(extMemoryPriority) {
		*tail, tail = raw.Ptr(c.priority), &c.priority.PNext
	}
	if has(extPageable) {
		*tail, tail = raw.Ptr(c.pageable), &c.pageable.PNext
	}
	if has(extExecutables) {
		*tail, tail = raw.Ptr(c.inspect), &c.inspect.PNext
	}
	if has(extConditional) {
		*tail = raw.Ptr(c.cond)
	}
	return c
}

func (p *PhysicalDevice) queryFeatures() {
	if !p.modern() {
		return
	}
	c := newFeatureChain(p.has)
	p.instance.fn.GetPhysicalDeviceFeatures2(p.handle, c.core)
	f := &p.Features
	f.BufferDeviceAddress = c.v12.BufferDeviceAddress.Bool()
	f.TimelineSemaphore = c.v12.TimelineSemaphore.Bool()
	f.HostQueryReset = c.v12.HostQueryReset.Bool()
	f.Float16, f.Int8 = c.v12.ShaderFloat16.Bool(), c.v12.ShaderInt8.Bool()
	f.Int64 = c.core.Features.ShaderInt64.Bool()
	f.Storage8, f.Storage16 = c.v12.StorageBuffer8BitAccess.Bool(), c.v11.StorageBuffer16BitAccess.Bool()
	f.IntDotProduct = c.dot.ShaderIntegerDotProduct.Bool()
	f.SubgroupSizeControl = c.size.SubgroupSizeControl.Bool() && p.Limits.SubgroupMax > 0
	f.CooperativeMatrix = c.coop.CooperativeMatrix.Bool() && c.v12.VulkanMemoryModel.Bool() && c.v12.VulkanMemoryModelDeviceScope.Bool() && f.Float16 && f.Storage16
	f.Persistent = true
	f.FlexibleMatrix = f.CooperativeMatrix && c.coop2.CooperativeMatrixFlexibleDimensions.Bool()
	if f.CooperativeMatrix {
		p.queryMatrices()
	}
	if f.FlexibleMatrix {
		p.queryFlexible()
	}
	f.Synchronization2 = c.sync2.Synchronization2.Bool()
	f.MemoryPriority = c.priority.MemoryPriority.Bool()
	f.PageableDeviceLocal = c.pageable.PageableDeviceLocalMemory.Bool() && f.MemoryPriority
	f.ConditionalRendering = c.cond.ConditionalRendering.Bool()
	f.HostImport = p.has(extHostImport)
	f.Inspect = c.inspect.PipelineExecutableInfo.Bool()
	f.CalibratedTimestamps = p.calibrates()
	if !f.SubgroupSizeControl {
		p.Limits.SubgroupMin, p.Limits.SubgroupMax = 0, 0
	}
}

// queryMatrices lists the products of halves summed in floats. A driver that fails to tell has none.
func (p *PhysicalDevice) queryMatrices() {
	var n uint32
	fn := p.instance.fn
	if fn.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(p.handle, &n, nil) != raw.Success || n == 0 {
		return
	}
	list := make([]raw.CooperativeMatrixPropertiesKHR, n)
	for i := range list {
		list[i].SType = raw.StructureTypeCooperativeMatrixPropertiesKHR
	}
	if r := fn.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(p.handle, &n, &list[0]); r != raw.Success && r != raw.Incomplete {
		return
	}
	for _, m := range list[:n] {
		if m.Scope == raw.ScopeSubgroupKHR && m.AType == raw.ComponentTypeFloat16KHR && m.BType == m.AType &&
			m.CType == raw.ComponentTypeFloat32KHR && m.ResultType == m.CType {
			p.CooperativeMatrices = append(p.CooperativeMatrices, CooperativeMatrix{int(m.MSize), int(m.NSize), int(m.KSize)})
		}
	}
}

// queryFlexible lists what the dimensions of such products may be multiples of.
func (p *PhysicalDevice) queryFlexible() {
	var n uint32
	fn := p.instance.fn
	if fn.GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(p.handle, &n, nil) != raw.Success || n == 0 {
		return
	}
	list := make([]raw.CooperativeMatrixFlexibleDimensionsPropertiesNV, n)
	for i := range list {
		list[i].SType = raw.StructureTypeCooperativeMatrixFlexibleDimensionsPropertiesNV
	}
	if r := fn.GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV(p.handle, &n, &list[0]); r != raw.Success && r != raw.Incomplete {
		return
	}
	for _, m := range list[:n] {
		if m.Scope == raw.ScopeSubgroupKHR && m.AType == raw.ComponentTypeFloat16KHR && m.BType == m.AType &&
			m.CType == raw.ComponentTypeFloat32KHR && m.ResultType == m.CType && min(m.MGranularity, m.NGranularity, m.KGranularity) > 0 {
			p.granularities = append(p.granularities, CooperativeMatrix{int(m.MGranularity), int(m.NGranularity), int(m.KGranularity)})
		}
	}
}

// Multiplies reports whether a subgroup of the device, opened with f, multiplies matrices of the size of m.
func (p *PhysicalDevice) Multiplies(f Features, m CooperativeMatrix) bool {
	if !f.CooperativeMatrix {
		return false
	}
	return slices.Contains(p.CooperativeMatrices, m) || f.FlexibleMatrix && slices.ContainsFunc(p.granularities, func(g CooperativeMatrix) bool {
		return m.M%g.M == 0 && m.N%g.N == 0 && m.K%g.K == 0
	})
}

// Enabled names what DeviceOptions.Enable knows, for usage texts.
func Enabled() []string { return []string{"coopmat", "persistent"} }

// Choose gives the features to open p with: all that serve, less the groups of disable. Cooperative matrices and
// persistent workgroups serve a GPU; on a CPU they are slower than what does without, and wanted by tests alone, which name them in enable.
func (p *PhysicalDevice) Choose(disable, enable []string) (Features, error) {
	for _, n := range enable {
		if !slices.Contains(Enabled(), n) {
			return p.Features, fmt.Errorf("enable %q: no such feature among %v", n, Enabled())
		}
	}
	f := p.Features
	if !slices.Contains(enable, "coopmat") {
		f.FlexibleMatrix = false // no GPU needs it for the size that kernels have
		f.CooperativeMatrix = f.CooperativeMatrix && p.Type != CPU
	}
	if !slices.Contains(enable, "persistent") {
		f.Persistent = f.Persistent && p.Type != CPU
	}
	return f.Without(disable)
}

// Disabled names what DeviceOptions.Disable knows, for usage texts.
func Disabled() []string {
	return []string{"fp16", "int8", "subgroup", "coopmat", "int64", "persistent"}
}

// Without gives f less the named groups.
func (f Features) Without(names []string) (Features, error) {
	for _, n := range names {
		switch n {
		case "fp16":
			f.Float16, f.Storage16 = false, false
			f.CooperativeMatrix, f.FlexibleMatrix = false, false
		case "int8":
			f.Int8, f.Storage8, f.IntDotProduct = false, false, false
		case "subgroup":
			f.SubgroupArithmetic, f.SubgroupSizeControl = false, false
		case "coopmat":
			f.CooperativeMatrix, f.FlexibleMatrix = false, false
		case "int64":
			f.Int64 = false
		case "persistent":
			f.Persistent = false
		default:
			return f, fmt.Errorf("disable %q: no such feature among %v", n, Disabled())
		}
	}
	return f, nil
}

// extensions lists what must be enabled for the features of f.
func (f Features) extensions(p *PhysicalDevice) []string {
	var list []string
	for _, e := range []struct {
		on  bool
		ext string
	}{
		{f.SubgroupSizeControl, extSubgroupSize},
		{f.IntDotProduct, extIntDot},
		{f.CooperativeMatrix, extCoopMatrix},
		{f.FlexibleMatrix, extCoopMatrix2},
		{f.MemoryBudget, extMemoryBudget},
		{f.MemoryPriority, extMemoryPriority},
		{f.PageableDeviceLocal, extPageable},
		{f.ConditionalRendering, extConditional},
		{f.HostImport, extHostImport},
		{f.Inspect, extExecutables},
		{f.CalibratedTimestamps && p.has(extCalibrated), extCalibrated},
		{f.CalibratedTimestamps && !p.has(extCalibrated), extCalibratedKHR},
		{p.has(extPortabilitySub), extPortabilitySub}, // a device that has it demands it
	} {
		if e.on {
			list = append(list, e.ext)
		}
	}
	return list
}

// enable makes the chain that turns on f.
func (f Features) enable(exts []string) *featureChain {
	c := newFeatureChain(func(ext string) bool { return slices.Contains(exts, ext) })
	c.core.Features.ShaderInt64 = raw.ToBool32(f.Int64)
	c.v11.StorageBuffer16BitAccess = raw.ToBool32(f.Storage16)
	c.v12.BufferDeviceAddress, c.v12.TimelineSemaphore = 1, 1
	c.v12.HostQueryReset = raw.ToBool32(f.HostQueryReset)
	c.v12.ShaderFloat16, c.v12.ShaderInt8 = raw.ToBool32(f.Float16), raw.ToBool32(f.Int8)
	c.v12.StorageBuffer8BitAccess = raw.ToBool32(f.Storage8)
	c.size.SubgroupSizeControl = raw.ToBool32(f.SubgroupSizeControl)
	c.dot.ShaderIntegerDotProduct = raw.ToBool32(f.IntDotProduct)
	c.v12.VulkanMemoryModel, c.v12.VulkanMemoryModelDeviceScope = raw.ToBool32(f.CooperativeMatrix), raw.ToBool32(f.CooperativeMatrix) // the scope: of atomics, which kernels without matrices have

	c.coop.CooperativeMatrix = raw.ToBool32(f.CooperativeMatrix)
	c.coop2.CooperativeMatrixFlexibleDimensions = raw.ToBool32(f.FlexibleMatrix)
	c.priority.MemoryPriority = raw.ToBool32(f.MemoryPriority)
	c.pageable.PageableDeviceLocalMemory = raw.ToBool32(f.PageableDeviceLocal)
	c.inspect.PipelineExecutableInfo = raw.ToBool32(f.Inspect)
	c.cond.ConditionalRendering = raw.ToBool32(f.ConditionalRendering)
	return c
}
