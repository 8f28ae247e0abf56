package vk

import (
	"fmt"
	"unsafe"
)

// Loader is the functions that need no instance.
type Loader struct {
	EnumerateInstanceVersion             func(*uint32) Result
	EnumerateInstanceExtensionProperties func(*byte, *uint32, *ExtensionProperties) Result
	CreateInstance                       func(*InstanceCreateInfo, unsafe.Pointer, *Instance) Result

	address func(Instance, string) uintptr // vkGetInstanceProcAddr
}

// Functions is the functions of an instance.
type Functions struct {
	DestroyInstance                        func(Instance, unsafe.Pointer)
	EnumeratePhysicalDevices               func(Instance, *uint32, *PhysicalDevice) Result
	GetPhysicalDeviceProperties2           func(PhysicalDevice, *Properties2)
	GetPhysicalDeviceFeatures2             func(PhysicalDevice, *Features2)
	GetPhysicalDeviceQueueFamilyProperties func(PhysicalDevice, *uint32, *QueueFamilyProperties)
	GetPhysicalDeviceMemoryProperties      func(PhysicalDevice, *MemoryProperties)
	EnumerateDeviceExtensionProperties     func(PhysicalDevice, *byte, *uint32, *ExtensionProperties) Result

	// nil where no driver has VK_KHR_cooperative_matrix
	GetPhysicalDeviceCooperativeMatrixPropertiesKHR func(PhysicalDevice, *uint32, *MatrixProperties) Result `vk:"optional"`

	CreateDevice      func(PhysicalDevice, *DeviceCreateInfo, unsafe.Pointer, *Device) Result
	GetDeviceProcAddr func(Device, string) uintptr
}

// DeviceFunctions is the functions of one device. They are loaded with vkGetDeviceProcAddr, which
// leaves the loader out of each call.
type DeviceFunctions struct {
	DestroyDevice               func(Device, unsafe.Pointer)
	GetDeviceQueue              func(Device, uint32, uint32, *Queue)
	DeviceWaitIdle              func(Device) Result
	CreateBuffer                func(Device, *BufferCreateInfo, unsafe.Pointer, *Buffer) Result
	DestroyBuffer               func(Device, Buffer, unsafe.Pointer)
	GetBufferMemoryRequirements func(Device, Buffer, *MemoryRequirements)
	AllocateMemory              func(Device, *MemoryAllocateInfo, unsafe.Pointer, *DeviceMemory) Result
	FreeMemory                  func(Device, DeviceMemory, unsafe.Pointer)
	BindBufferMemory            func(Device, Buffer, DeviceMemory, uint64) Result
	MapMemory                   func(Device, DeviceMemory, uint64, uint64, uint32, *unsafe.Pointer) Result
	GetBufferDeviceAddress      func(Device, *BufferDeviceAddressInfo) uint64
	CreateShaderModule          func(Device, *ShaderModuleCreateInfo, unsafe.Pointer, *ShaderModule) Result
	DestroyShaderModule         func(Device, ShaderModule, unsafe.Pointer)
	CreatePipelineLayout        func(Device, *PipelineLayoutCreateInfo, unsafe.Pointer, *PipelineLayout) Result
	DestroyPipelineLayout       func(Device, PipelineLayout, unsafe.Pointer)
	CreateComputePipelines      func(Device, uint64, uint32, *ComputePipelineCreateInfo, unsafe.Pointer, *Pipeline) Result
	DestroyPipeline             func(Device, Pipeline, unsafe.Pointer)
	CreateCommandPool           func(Device, *CommandPoolCreateInfo, unsafe.Pointer, *CommandPool) Result
	DestroyCommandPool          func(Device, CommandPool, unsafe.Pointer)
	AllocateCommandBuffers      func(Device, *CommandBufferAllocateInfo, *CommandBuffer) Result
	FreeCommandBuffers          func(Device, CommandPool, uint32, *CommandBuffer)
	BeginCommandBuffer          func(CommandBuffer, *CommandBufferBeginInfo) Result
	EndCommandBuffer            func(CommandBuffer) Result
	CmdBindPipeline             func(CommandBuffer, uint32, Pipeline)
	CmdPushConstants            func(CommandBuffer, PipelineLayout, uint32, uint32, uint32, unsafe.Pointer)
	CmdDispatch                 func(CommandBuffer, uint32, uint32, uint32)
	CmdPipelineBarrier          func(CommandBuffer, uint32, uint32, uint32, uint32, *MemoryBarrier, uint32, unsafe.Pointer, uint32, unsafe.Pointer)
	CmdCopyBuffer               func(CommandBuffer, Buffer, Buffer, uint32, *BufferCopy)
	CmdFillBuffer               func(CommandBuffer, Buffer, uint64, uint64, uint32)
	QueueSubmit                 func(Queue, uint32, *SubmitInfo, Fence) Result
	CreateFence                 func(Device, *FenceCreateInfo, unsafe.Pointer, *Fence) Result
	DestroyFence                func(Device, Fence, unsafe.Pointer)
	ResetFences                 func(Device, uint32, *Fence) Result
	WaitForFences               func(Device, uint32, *Fence, uint32, uint64) Result
}

// Results of calls that callers tell apart.
const (
	Timeout           Result = 2
	OutOfHostMemory   Result = -1
	OutOfDeviceMemory Result = -2
	DeviceLost        Result = -4
)

// String returns what r means.
func (r Result) String() string {
	switch r {
	case 0:
		return "success"
	case Timeout:
		return "no answer in time"
	case OutOfHostMemory:
		return "out of host memory"
	case OutOfDeviceMemory:
		return "out of device memory"
	case -3:
		return "initialization failed"
	case DeviceLost:
		return "device lost"
	case -7:
		return "extension not present"
	case -8:
		return "feature not present"
	case -9:
		return "incompatible driver"
	}
	return fmt.Sprintf("result %d", int32(r))
}

// Error makes an r other than 0 an error.
func (r Result) Error() string { return r.String() }

// Err returns nil for success, and otherwise an error that names what failed and wraps r.
func (r Result) Err(what string) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("vulkan: %s: %w", what, r)
}
