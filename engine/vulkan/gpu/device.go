// Package gpu computes on a Vulkan device: buffers that stay on it, compute pipelines whose
// arguments are addresses and numbers, and command buffers that are recorded once and run many
// times.
package gpu

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/entrain-network/entrain/engine/vulkan/vk"
)

// A Kind is what sort of device Vulkan says that a device is.
type Kind uint32

// The kinds of devices.
const (
	Integrated Kind = 1
	Discrete   Kind = 2
	Virtual    Kind = 3
	Processor  Kind = 4 // an implementation of Vulkan on the machine's processors
)

// String returns k in a word.
func (k Kind) String() string {
	switch k {
	case Integrated:
		return "integrated"
	case Discrete:
		return "discrete"
	case Virtual:
		return "virtual"
	case Processor:
		return "processor"
	}
	return "other"
}

// Info describes a device.
type Info struct {
	Name, Driver, DriverInfo string
	DriverVersion            uint32 // in the driver's own numbering
	APIVersion               uint32
	Kind                     Kind
	Vendor, Device           uint32 // numbers of the PCI
	MemoryBytes              uint64 // of the largest heap on the device

	float         vk.FloatControlsProperties
	bufferAddress bool
	shaderFMA     bool
	dotProducts   bool
	matrices      Matrices
	sharedMemory  uint32
	invocations   uint32
}

// Matrices says which matrices of bytes a device multiplies by itself: (M, K) by (K, N) to (M, N),
// by Subgroup invocations. The zero value: none.
type Matrices struct{ M, N, K, Subgroup int }

// Version returns the version of Vulkan that the device implements.
func (i Info) Version() string {
	return fmt.Sprintf("%d.%d.%d", i.APIVersion>>22, i.APIVersion>>12&0x3ff, i.APIVersion&0xfff)
}

// An Instance is the loaded Vulkan library.
type Instance struct {
	f       *vk.Functions
	handle  vk.Instance
	devices []vk.PhysicalDevice
}

// Open loads Vulkan. No loader, and no driver, are errors: the caller computes on processors then.
func Open() (*Instance, error) {
	l, err := vk.Load()
	if err != nil {
		return nil, err
	}
	app := &vk.ApplicationInfo{SType: vk.TypeApplicationInfo, ApplicationName: cstring("entrain"), EngineName: cstring("entrain"), APIVersion: vk.Version13}
	info := &vk.InstanceCreateInfo{SType: vk.TypeInstanceCreateInfo, ApplicationInfo: app}
	// The loader lists MoltenVK's devices only for programs that declare to know of its limits.
	extensions := list(func(n *uint32, e *vk.ExtensionProperties) vk.Result {
		return l.EnumerateInstanceExtensionProperties(nil, n, e)
	})
	if has(extensions, "VK_KHR_portability_enumeration") {
		names := []*byte{cstring("VK_KHR_portability_enumeration")}
		info.Flags, info.ExtensionCount, info.Extensions = vk.EnumeratePortability, 1, &names[0]
	}
	i := new(Instance)
	if err := l.CreateInstance(info, nil, &i.handle).Err("instance"); err != nil {
		return nil, fmt.Errorf("vulkan: no driver of a GPU is installed, or none that works: %w", err)
	}
	if i.f, err = l.Instance(i.handle); err != nil {
		return nil, err
	}
	i.devices = list(func(n *uint32, d *vk.PhysicalDevice) vk.Result { return i.f.EnumeratePhysicalDevices(i.handle, n, d) })
	return i, nil
}

// Close releases the library. Its devices must be closed before.
func (i *Instance) Close() { i.f.DestroyInstance(i.handle, nil) }

// Devices describes all devices, in the order of their numbers.
func (i *Instance) Devices() []Info {
	infos := make([]Info, len(i.devices))
	for n := range i.devices {
		infos[n] = i.describe(i.devices[n])
	}
	return infos
}

func (i *Instance) describe(p vk.PhysicalDevice) Info {
	f := i.f
	float := &vk.FloatControlsProperties{SType: vk.TypeFloatControlsProperties}
	driver := &vk.DriverProperties{SType: vk.TypeDriverProperties, PNext: unsafe.Pointer(float)}
	props := &vk.Properties2{SType: vk.TypeProperties2, PNext: unsafe.Pointer(driver)}
	f.GetPhysicalDeviceProperties2(p, props)
	f12 := &vk.Vulkan12Features{SType: vk.TypeVulkan12Features}
	fma := &vk.FlagFeatures{SType: vk.TypeShaderFmaFeatures}
	dot := &vk.FlagFeatures{SType: vk.TypeIntegerDotProductFeatures}
	matrix := &vk.FlagFeatures{SType: vk.TypeMatrixFeatures}
	next, extensions := unsafe.Pointer(f12), i.extensions(p)
	if has(extensions, shaderFMA) {
		fma.PNext, next = next, unsafe.Pointer(fma)
	}
	if has(extensions, dotProducts) {
		dot.PNext, next = next, unsafe.Pointer(dot)
	}
	if has(extensions, matrices) {
		matrix.PNext, next = next, unsafe.Pointer(matrix)
	}
	f.GetPhysicalDeviceFeatures2(p, &vk.Features2{SType: vk.TypeFeatures2, PNext: next})
	x := props.Properties
	info := Info{
		Name: text(x.DeviceName[:]), Driver: text(driver.DriverName[:]), DriverInfo: text(driver.DriverInfo[:]), DriverVersion: x.DriverVersion,
		APIVersion: x.APIVersion, Kind: Kind(x.DeviceType), Vendor: x.VendorID, Device: x.DeviceID,
		sharedMemory: x.Limits.MaxComputeSharedMemory, invocations: x.Limits.MaxComputeInvocations,
		float:         *float,
		bufferAddress: f12.Flags[vk.Feature12BufferAddress] != 0 && f12.Flags[vk.Feature12ScalarLayout] != 0,
		shaderFMA:     fma.Flags[1] != 0,
		dotProducts:   dot.Flags[0] != 0,
	}
	info.float.PNext = nil
	if matrix.Flags[0] != 0 && f12.Flags[vk.Feature12Int8] != 0 && f12.Flags[vk.Feature12MemoryModel] != 0 && info.sharedMemory >= matrixShared {
		info.matrices = i.matrices(p)
	}
	mem := new(vk.MemoryProperties)
	f.GetPhysicalDeviceMemoryProperties(p, mem)
	for h := range mem.HeapCount {
		if heap := mem.Heaps[h]; heap.Flags&vk.MemoryDeviceLocal != 0 {
			info.MemoryBytes = max(info.MemoryBytes, heap.Size)
		}
	}
	return info
}

// matrices returns the largest matrices of bytes whose products are sums of 32 bits.
func (i *Instance) matrices(p vk.PhysicalDevice) (best Matrices) {
	if i.f.GetPhysicalDeviceCooperativeMatrixPropertiesKHR == nil {
		return best
	}
	subgroup := &vk.SubgroupProperties{SType: vk.TypeSubgroupProperties}
	i.f.GetPhysicalDeviceProperties2(p, &vk.Properties2{SType: vk.TypeProperties2, PNext: unsafe.Pointer(subgroup)})
	for _, m := range list(func(n *uint32, first *vk.MatrixProperties) vk.Result {
		if first != nil {
			for j := range unsafe.Slice(first, *n) {
				unsafe.Slice(first, *n)[j].SType = vk.TypeMatrixProperties
			}
		}
		return i.f.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(p, n, first)
	}) {
		if m.A == vk.ComponentInt8 && m.B == vk.ComponentInt8 && m.C == vk.ComponentInt32 && m.Result == vk.ComponentInt32 &&
			m.Saturates == 0 && m.Scope == vk.ScopeSubgroup && int(m.M*m.N*m.K) > best.M*best.N*best.K {
			best = Matrices{int(m.M), int(m.N), int(m.K), int(subgroup.Size)}
		}
	}
	return best
}

// Extensions.
const (
	matrices    = "VK_KHR_cooperative_matrix"
	shaderFMA   = "VK_KHR_shader_fma"
	dotProducts = "VK_KHR_shader_integer_dot_product"
	portability = "VK_KHR_portability_subset"
)

// What kernels take of a device at least.
const (
	leastInvocations = 256
	leastShared      = 20 << 10
	matrixShared     = 24 << 10 // of those that multiply matrices of bytes
)

// A Device computes. One goroutine at a time may use it.
type Device struct {
	Info
	Modes FloatModes // of the kernels made from now on

	f       *vk.DeviceFunctions
	handle  vk.Device
	memory  vk.MemoryProperties
	queue   vk.Queue
	pool    vk.CommandPool
	layout  vk.PipelineLayout
	staging *Buffer
	traffic Traffic
	kernels []*Kernel
	gather  *Kernel // made when it is first needed
	lost    bool    // it may still write to memory, which must not be freed
}

// pushBytes is the number of bytes of arguments that every device takes.
const pushBytes = 128

// Device opens device number index.
func (i *Instance) Device(index int) (*Device, error) {
	if index < 0 || index >= len(i.devices) {
		return nil, fmt.Errorf("vulkan: there is no such device, only %d from 0 on: see entrain bench --device list", len(i.devices))
	}
	p := i.devices[index]
	d := &Device{Info: i.describe(p)}
	if d.APIVersion < vk.Version12 || !d.bufferAddress || d.invocations < leastInvocations || d.sharedMemory < leastShared {
		return nil, fmt.Errorf("vulkan: %s with Vulkan %s lacks what kernels need: version 1.2, buffer addresses, %d invocations, %d bytes of shared memory",
			d.Name, d.Version(), leastInvocations, leastShared)
	}
	family, err := i.computeFamily(p)
	if err != nil {
		return nil, err
	}
	if err := i.create(p, d, family); err != nil {
		return nil, err
	}
	d.f.GetDeviceQueue(d.handle, family, 0, &d.queue)
	i.f.GetPhysicalDeviceMemoryProperties(p, &d.memory)
	pool := &vk.CommandPoolCreateInfo{SType: vk.TypeCommandPoolCreateInfo, Family: family}
	if err := d.f.CreateCommandPool(d.handle, pool, nil, &d.pool).Err("command pool"); err != nil {
		return nil, err
	}
	push := &vk.PushConstantRange{Stages: vk.ShaderStageCompute, Size: pushBytes}
	layout := &vk.PipelineLayoutCreateInfo{SType: vk.TypePipelineLayoutCreateInfo, PushCount: 1, Pushes: push}
	if err := d.f.CreatePipelineLayout(d.handle, layout, nil, &d.layout).Err("pipeline layout"); err != nil {
		return nil, err
	}
	d.Modes = FloatModes{
		DenormPreserve: d.float.DenormPreserve32 != 0, SignedZeroInfNan: d.float.SignedZeroInfNan32 != 0,
		RoundToEven: d.float.RTE32 != 0, CorrectFMA: d.shaderFMA,
	}
	return d, nil
}

// computeFamily returns the family of queues that can compute, preferring one that does not draw,
// so that the screen does not wait for a step.
func (i *Instance) computeFamily(p vk.PhysicalDevice) (uint32, error) {
	families := list(func(n *uint32, q *vk.QueueFamilyProperties) vk.Result {
		i.f.GetPhysicalDeviceQueueFamilyProperties(p, n, q)
		return 0
	})
	best := -1
	for n, q := range families {
		if q.Flags&vk.QueueCompute != 0 && (best < 0 || q.Flags&vk.QueueGraphics == 0 && families[best].Flags&vk.QueueGraphics != 0) {
			best = n
		}
	}
	if best < 0 {
		return 0, errors.New("vulkan: the device has no queue that computes")
	}
	return uint32(best), nil
}

// create creates the logical device, with no feature that is not used.
func (i *Instance) create(p vk.PhysicalDevice, d *Device, family uint32) (err error) {
	priority := new(float32)
	queue := &vk.DeviceQueueCreateInfo{SType: vk.TypeDeviceQueueCreateInfo, Family: family, Count: 1, Priorities: priority}
	f12 := &vk.Vulkan12Features{SType: vk.TypeVulkan12Features}
	f12.Flags[vk.Feature12BufferAddress], f12.Flags[vk.Feature12ScalarLayout] = 1, 1
	next := unsafe.Pointer(f12)
	var names []*byte
	if has(i.extensions(p), portability) {
		names = append(names, cstring(portability))
	}
	if d.shaderFMA {
		next = unsafe.Pointer(&vk.FlagFeatures{SType: vk.TypeShaderFmaFeatures, PNext: next, Flags: [4]uint32{0, 1}})
		names = append(names, cstring(shaderFMA))
	}
	if d.matrices.M > 0 {
		f12.Flags[vk.Feature12Int8], f12.Flags[vk.Feature12MemoryModel] = 1, 1
		next = unsafe.Pointer(&vk.FlagFeatures{SType: vk.TypeMatrixFeatures, PNext: next, Flags: [4]uint32{1}})
		names = append(names, cstring(matrices))
	}
	if d.dotProducts {
		next = unsafe.Pointer(&vk.FlagFeatures{SType: vk.TypeIntegerDotProductFeatures, PNext: next, Flags: [4]uint32{1}})
		names = append(names, cstring(dotProducts))
	}
	info := &vk.DeviceCreateInfo{SType: vk.TypeDeviceCreateInfo, PNext: next, QueueCount: 1, Queues: queue}
	if len(names) > 0 {
		info.ExtensionCount, info.Extensions = uint32(len(names)), &names[0]
	}
	if err := i.f.CreateDevice(p, info, nil, &d.handle).Err("device"); err != nil {
		return err
	}
	d.f, err = i.f.Device(d.handle)
	return err
}

// DotProducts reports whether kernels may multiply four bytes by four in one instruction.
func (d *Device) DotProducts() bool { return d.dotProducts }

// Matrices returns which matrices of bytes the device multiplies.
func (d *Device) Matrices() Matrices { return d.matrices }

// Close waits for the device and releases it. Its buffers must have been freed. A device that does
// not answer keeps its memory until the process ends.
func (d *Device) Close() {
	if d.lost {
		return
	}
	d.f.DeviceWaitIdle(d.handle)
	for _, k := range d.kernels {
		d.f.DestroyPipeline(d.handle, k.pipeline, nil)
	}
	if d.staging != nil {
		d.staging.free()
	}
	d.f.DestroyPipelineLayout(d.handle, d.layout, nil)
	d.f.DestroyCommandPool(d.handle, d.pool, nil)
	d.f.DestroyDevice(d.handle, nil)
}

func (i *Instance) extensions(p vk.PhysicalDevice) []vk.ExtensionProperties {
	return list(func(n *uint32, e *vk.ExtensionProperties) vk.Result {
		return i.f.EnumerateDeviceExtensionProperties(p, nil, n, e)
	})
}

// list calls a function of Vulkan that fills a list: first for its length.
func list[T any](call func(n *uint32, first *T) vk.Result) []T {
	n := new(uint32)
	if call(n, nil) != 0 || *n == 0 {
		return nil
	}
	all := make([]T, *n)
	if call(n, &all[0]) < 0 {
		return nil
	}
	return all[:min(int(*n), len(all))]
}

func has(list []vk.ExtensionProperties, name string) bool {
	for i := range list {
		if text(list[i].Name[:]) == name {
			return true
		}
	}
	return false
}

func cstring(s string) *byte { return &append([]byte(s), 0)[0] }

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
