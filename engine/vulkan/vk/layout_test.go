package vk

import (
	"testing"
	"unsafe"
)

// The numbers are what gcc gives for vulkan_core.h (1.3.239) on amd64; the layout is the same on every 64-bit machine.
func TestStructuresHaveTheLayoutOfC(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"ApplicationInfo", unsafe.Sizeof(ApplicationInfo{}), 48}, {"InstanceCreateInfo", unsafe.Sizeof(InstanceCreateInfo{}), 64},
		{"ExtensionProperties", unsafe.Sizeof(ExtensionProperties{}), 260}, {"Limits", unsafe.Sizeof(Limits{}), 504},
		{"Limits.MaxStorageBufferRange", unsafe.Offsetof(Limits{}.MaxStorageBufferRange), 28},
		{"Limits.MaxPushConstantsSize", unsafe.Offsetof(Limits{}.MaxPushConstantsSize), 32},
		{"Limits.MaxComputeSharedMemory", unsafe.Offsetof(Limits{}.MaxComputeSharedMemory), 216},
		{"Limits.MaxComputeWorkGroupCount", unsafe.Offsetof(Limits{}.MaxComputeWorkGroupCount), 220},
		{"Limits.MaxComputeInvocations", unsafe.Offsetof(Limits{}.MaxComputeInvocations), 232},
		{"Limits.TimestampPeriod", unsafe.Offsetof(Limits{}.TimestampPeriod), 424},
		{"Properties", unsafe.Sizeof(Properties{}), 824}, {"Properties.Limits", unsafe.Offsetof(Properties{}.Limits), 296},
		{"Properties2", unsafe.Sizeof(Properties2{}), 840}, {"DriverProperties", unsafe.Sizeof(DriverProperties{}), 536},
		{"FloatControlsProperties", unsafe.Sizeof(FloatControlsProperties{}), 88},
		{"Features2", unsafe.Sizeof(Features2{}), 240},
		{"Vulkan12Features", unsafe.Sizeof(Vulkan12Features{}), 208},
		{"SubgroupProperties", unsafe.Sizeof(SubgroupProperties{}), 32}, {"MatrixProperties", unsafe.Sizeof(MatrixProperties{}), 56},
		{"shaderInt8", 16 + 4*Feature12Int8, 48}, {"vulkanMemoryModel", 16 + 4*Feature12MemoryModel, 180},
		{"scalarBlockLayout", 16 + 4*Feature12ScalarLayout, 140}, {"bufferDeviceAddress", 16 + 4*Feature12BufferAddress, 168},
		{"QueueFamilyProperties", unsafe.Sizeof(QueueFamilyProperties{}), 24}, {"MemoryProperties", unsafe.Sizeof(MemoryProperties{}), 520},
		{"DeviceQueueCreateInfo", unsafe.Sizeof(DeviceQueueCreateInfo{}), 40}, {"DeviceCreateInfo", unsafe.Sizeof(DeviceCreateInfo{}), 72},
		{"BufferCreateInfo", unsafe.Sizeof(BufferCreateInfo{}), 56}, {"MemoryRequirements", unsafe.Sizeof(MemoryRequirements{}), 24},
		{"MemoryAllocateInfo", unsafe.Sizeof(MemoryAllocateInfo{}), 32}, {"MemoryAllocateFlagsInfo", unsafe.Sizeof(MemoryAllocateFlagsInfo{}), 24},
		{"BufferDeviceAddressInfo", unsafe.Sizeof(BufferDeviceAddressInfo{}), 24},
		{"ShaderModuleCreateInfo", unsafe.Sizeof(ShaderModuleCreateInfo{}), 40}, {"PushConstantRange", unsafe.Sizeof(PushConstantRange{}), 12},
		{"PipelineLayoutCreateInfo", unsafe.Sizeof(PipelineLayoutCreateInfo{}), 48},
		{"SpecializationMapEntry", unsafe.Sizeof(SpecializationMapEntry{}), 16}, {"SpecializationInfo", unsafe.Sizeof(SpecializationInfo{}), 32},
		{"PipelineShaderStageCreateInfo", unsafe.Sizeof(PipelineShaderStageCreateInfo{}), 48},
		{"ComputePipelineCreateInfo", unsafe.Sizeof(ComputePipelineCreateInfo{}), 96},
		{"CommandPoolCreateInfo", unsafe.Sizeof(CommandPoolCreateInfo{}), 24},
		{"CommandBufferAllocateInfo", unsafe.Sizeof(CommandBufferAllocateInfo{}), 32},
		{"CommandBufferBeginInfo", unsafe.Sizeof(CommandBufferBeginInfo{}), 32}, {"MemoryBarrier", unsafe.Sizeof(MemoryBarrier{}), 24},
		{"BufferCopy", unsafe.Sizeof(BufferCopy{}), 24}, {"SubmitInfo", unsafe.Sizeof(SubmitInfo{}), 72},
		{"FenceCreateInfo", unsafe.Sizeof(FenceCreateInfo{}), 24},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}
