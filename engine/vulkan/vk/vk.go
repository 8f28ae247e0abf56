// Package vk is the part of Vulkan 1.2 that compute needs, called through purego: no cgo, no header
// and no generated code. Names are Vulkan's without the prefix; its specification defines them.
//
// Structures are Go structures of the same layout (Go aligns as C does on 64-bit machines; a test
// compares sizes and offsets with those that a C compiler gave for vulkan_core.h). Pointers in them
// are Go pointers, so that the garbage collector sees what they point to; Go does not move the
// heap, and a call returns before anything is released.
package vk

import "unsafe"

// Handles. Dispatchable ones are pointers in C, others 64-bit numbers; both are 8 bytes here.
type (
	Instance       uintptr
	PhysicalDevice uintptr
	Device         uintptr
	Queue          uintptr
	CommandBuffer  uintptr
	Buffer         uint64
	DeviceMemory   uint64
	ShaderModule   uint64
	PipelineLayout uint64
	Pipeline       uint64
	CommandPool    uint64
	Fence          uint64
	Result         int32
)

// API versions.
const (
	Version12 = 1<<22 | 2<<12
	Version13 = 1<<22 | 3<<12
)

// Structure types.
const (
	TypeApplicationInfo               = 0
	TypeInstanceCreateInfo            = 1
	TypeDeviceQueueCreateInfo         = 2
	TypeDeviceCreateInfo              = 3
	TypeSubmitInfo                    = 4
	TypeMemoryAllocateInfo            = 5
	TypeFenceCreateInfo               = 8
	TypeBufferCreateInfo              = 12
	TypeShaderModuleCreateInfo        = 16
	TypePipelineShaderStageCreateInfo = 18
	TypeComputePipelineCreateInfo     = 29
	TypePipelineLayoutCreateInfo      = 30
	TypeCommandPoolCreateInfo         = 39
	TypeCommandBufferAllocateInfo     = 40
	TypeCommandBufferBeginInfo        = 42
	TypeMemoryBarrier                 = 46
	TypeVulkan12Features              = 51
	TypeFeatures2                     = 1000059000
	TypeProperties2                   = 1000059001
	TypeMemoryAllocateFlagsInfo       = 1000060000
	TypeSubgroupProperties            = 1000094000
	TypeMatrixFeatures                = 1000506000
	TypeMatrixProperties              = 1000506001
	TypeDriverProperties              = 1000196000
	TypeFloatControlsProperties       = 1000197000
	TypeBufferDeviceAddressInfo       = 1000244001
	TypeIntegerDotProductFeatures     = 1000280000
	TypeShaderFmaFeatures             = 1000579000
)

// Flags.
const (
	QueueGraphics = 1
	QueueCompute  = 2

	BufferTransferSrc   = 1
	BufferTransferDst   = 2
	BufferStorage       = 0x20
	BufferDeviceAddress = 0x20000

	MemoryDeviceLocal  = 1
	MemoryHostVisible  = 2
	MemoryHostCoherent = 4
	MemoryHostCached   = 8

	AllocateDeviceAddress = 2

	AccessShaderRead    = 0x20
	AccessShaderWrite   = 0x40
	AccessTransferRead  = 0x800
	AccessTransferWrite = 0x1000
	AccessHostRead      = 0x2000
	AccessHostWrite     = 0x4000

	StageCompute  = 0x800
	StageTransfer = 0x1000
	StageHost     = 0x4000

	ShaderStageCompute   = 0x20
	BindPointCompute     = 1
	EnumeratePortability = 1
	WholeSize            = ^uint64(0)
)

// ApplicationInfo is VkApplicationInfo.
type ApplicationInfo struct {
	SType              uint32
	PNext              unsafe.Pointer
	ApplicationName    *byte
	ApplicationVersion uint32
	EngineName         *byte
	EngineVersion      uint32
	APIVersion         uint32
}

// InstanceCreateInfo is VkInstanceCreateInfo.
type InstanceCreateInfo struct {
	SType           uint32
	PNext           unsafe.Pointer
	Flags           uint32
	ApplicationInfo *ApplicationInfo
	LayerCount      uint32
	Layers          **byte
	ExtensionCount  uint32
	Extensions      **byte
}

// ExtensionProperties is VkExtensionProperties.
type ExtensionProperties struct {
	Name        [256]byte
	SpecVersion uint32
}

// Limits is VkPhysicalDeviceLimits; only what is used has a name.
type Limits struct {
	_                        [0]uint64 // 8-byte alignment
	_                        [28]byte
	MaxStorageBufferRange    uint32
	MaxPushConstantsSize     uint32
	_                        [216 - 36]byte
	MaxComputeSharedMemory   uint32
	MaxComputeWorkGroupCount [3]uint32
	MaxComputeInvocations    uint32
	MaxComputeWorkGroupSize  [3]uint32
	_                        [424 - 248]byte
	TimestampPeriod          float32
	_                        [504 - 428]byte
}

// Properties is VkPhysicalDeviceProperties.
type Properties struct {
	APIVersion, DriverVersion, VendorID, DeviceID, DeviceType uint32
	DeviceName                                                [256]byte
	PipelineCacheUUID                                         [16]byte
	Limits                                                    Limits
	Sparse                                                    [5]uint32
}

// Properties2 is VkPhysicalDeviceProperties2.
type Properties2 struct {
	SType      uint32
	PNext      unsafe.Pointer
	Properties Properties
}

// DriverProperties is VkPhysicalDeviceDriverProperties.
type DriverProperties struct {
	SType       uint32
	PNext       unsafe.Pointer
	DriverID    uint32
	DriverName  [256]byte
	DriverInfo  [256]byte
	Conformance [4]byte
}

// FloatControlsProperties says which float modes a shader may ask for.
type FloatControlsProperties struct {
	SType                                                      uint32
	PNext                                                      unsafe.Pointer
	DenormIndependence, RoundingIndependence                   uint32
	SignedZeroInfNan16, SignedZeroInfNan32, SignedZeroInfNan64 uint32
	DenormPreserve16, DenormPreserve32, DenormPreserve64       uint32
	DenormFlush16, DenormFlush32, DenormFlush64                uint32
	RTE16, RTE32, RTE64                                        uint32
	RTZ16, RTZ32, RTZ64                                        uint32
}

// Features2 is VkPhysicalDeviceFeatures2.
type Features2 struct {
	SType    uint32
	PNext    unsafe.Pointer
	Features [55]uint32
	_        uint32
}

// Indices into the flags of features.
const (
	Feature12Int8          = 8
	Feature12ScalarLayout  = 31
	Feature12BufferAddress = 38
	Feature12MemoryModel   = 41
)

// Vulkan12Features is VkPhysicalDeviceVulkan12Features.
type Vulkan12Features struct {
	SType uint32
	PNext unsafe.Pointer
	Flags [47]uint32
	_     uint32
}

// FlagFeatures is any features structure of up to four flags.
type FlagFeatures struct {
	SType uint32
	PNext unsafe.Pointer
	Flags [4]uint32
}

// SubgroupProperties is VkPhysicalDeviceSubgroupProperties.
type SubgroupProperties struct {
	SType                    uint32
	PNext                    unsafe.Pointer
	Size, Stages, Operations uint32
	QuadsInAllStages         uint32
}

// MatrixProperties is VkCooperativeMatrixPropertiesKHR.
type MatrixProperties struct {
	SType     uint32
	PNext     unsafe.Pointer
	M, N, K   uint32
	A, B, C   uint32 // types of components
	Result    uint32
	Saturates uint32
	Scope     uint32
	_         uint32
}

// Types of components of matrices, and the scope of a subgroup.
const (
	ComponentInt8  = 3
	ComponentInt32 = 5
	ScopeSubgroup  = 3
)

// QueueFamilyProperties is VkQueueFamilyProperties.
type QueueFamilyProperties struct {
	Flags, Count, TimestampBits uint32
	Granularity                 [3]uint32
}

// MemoryProperties is VkPhysicalDeviceMemoryProperties.
type MemoryProperties struct {
	TypeCount uint32
	Types     [32]struct{ Flags, Heap uint32 }
	HeapCount uint32
	Heaps     [16]struct {
		Size  uint64
		Flags uint32
		_     uint32
	}
}

// DeviceQueueCreateInfo is VkDeviceQueueCreateInfo.
type DeviceQueueCreateInfo struct {
	SType         uint32
	PNext         unsafe.Pointer
	Flags         uint32
	Family, Count uint32
	Priorities    *float32
}

// DeviceCreateInfo is VkDeviceCreateInfo.
type DeviceCreateInfo struct {
	SType          uint32
	PNext          unsafe.Pointer
	Flags          uint32
	QueueCount     uint32
	Queues         *DeviceQueueCreateInfo
	LayerCount     uint32
	Layers         **byte
	ExtensionCount uint32
	Extensions     **byte
	Features       unsafe.Pointer
}

// BufferCreateInfo is VkBufferCreateInfo.
type BufferCreateInfo struct {
	SType       uint32
	PNext       unsafe.Pointer
	Flags       uint32
	Size        uint64
	Usage       uint32
	SharingMode uint32
	FamilyCount uint32
	Families    *uint32
}

// MemoryRequirements is VkMemoryRequirements.
type MemoryRequirements struct {
	Size, Alignment uint64
	TypeBits        uint32
	_               uint32
}

// MemoryAllocateInfo is VkMemoryAllocateInfo.
type MemoryAllocateInfo struct {
	SType uint32
	PNext unsafe.Pointer
	Size  uint64
	Type  uint32
	_     uint32
}

// MemoryAllocateFlagsInfo is VkMemoryAllocateFlagsInfo.
type MemoryAllocateFlagsInfo struct {
	SType uint32
	PNext unsafe.Pointer
	Flags uint32
	Mask  uint32
}

// BufferDeviceAddressInfo is VkBufferDeviceAddressInfo.
type BufferDeviceAddressInfo struct {
	SType  uint32
	PNext  unsafe.Pointer
	Buffer Buffer
}

// ShaderModuleCreateInfo is VkShaderModuleCreateInfo.
type ShaderModuleCreateInfo struct {
	SType uint32
	PNext unsafe.Pointer
	Flags uint32
	Size  uintptr
	Code  *uint32
}

// PushConstantRange is VkPushConstantRange.
type PushConstantRange struct{ Stages, Offset, Size uint32 }

// PipelineLayoutCreateInfo is VkPipelineLayoutCreateInfo.
type PipelineLayoutCreateInfo struct {
	SType     uint32
	PNext     unsafe.Pointer
	Flags     uint32
	SetCount  uint32
	Sets      *uint64
	PushCount uint32
	Pushes    *PushConstantRange
}

// SpecializationMapEntry is VkSpecializationMapEntry.
type SpecializationMapEntry struct {
	ID, Offset uint32
	Size       uintptr
}

// SpecializationInfo is VkSpecializationInfo.
type SpecializationInfo struct {
	Count   uint32
	Entries *SpecializationMapEntry
	Size    uintptr
	Data    unsafe.Pointer
}

// PipelineShaderStageCreateInfo is VkPipelineShaderStageCreateInfo.
type PipelineShaderStageCreateInfo struct {
	SType          uint32
	PNext          unsafe.Pointer
	Flags          uint32
	Stage          uint32
	Module         ShaderModule
	Name           *byte
	Specialization *SpecializationInfo
}

// ComputePipelineCreateInfo is VkComputePipelineCreateInfo.
type ComputePipelineCreateInfo struct {
	SType     uint32
	PNext     unsafe.Pointer
	Flags     uint32
	Stage     PipelineShaderStageCreateInfo
	Layout    PipelineLayout
	Base      Pipeline
	BaseIndex int32
	_         uint32
}

// CommandPoolCreateInfo is VkCommandPoolCreateInfo.
type CommandPoolCreateInfo struct {
	SType  uint32
	PNext  unsafe.Pointer
	Flags  uint32
	Family uint32
}

// CommandBufferAllocateInfo is VkCommandBufferAllocateInfo.
type CommandBufferAllocateInfo struct {
	SType uint32
	PNext unsafe.Pointer
	Pool  CommandPool
	Level uint32
	Count uint32
}

// CommandBufferBeginInfo is VkCommandBufferBeginInfo.
type CommandBufferBeginInfo struct {
	SType       uint32
	PNext       unsafe.Pointer
	Flags       uint32
	Inheritance unsafe.Pointer
}

// MemoryBarrier is VkMemoryBarrier.
type MemoryBarrier struct {
	SType    uint32
	PNext    unsafe.Pointer
	Src, Dst uint32
}

// BufferCopy is VkBufferCopy.
type BufferCopy struct{ Src, Dst, Size uint64 }

// SubmitInfo is VkSubmitInfo.
type SubmitInfo struct {
	SType       uint32
	PNext       unsafe.Pointer
	WaitCount   uint32
	Waits       *uint64
	WaitStages  *uint32
	BufferCount uint32
	Buffers     *CommandBuffer
	SignalCount uint32
	Signals     *uint64
}

// FenceCreateInfo is VkFenceCreateInfo.
type FenceCreateInfo struct {
	SType uint32
	PNext unsafe.Pointer
	Flags uint32
	_     uint32
}
