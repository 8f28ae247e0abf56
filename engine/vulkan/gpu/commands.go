package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
)

// modeConstant is the number of the specialization constant that holds a kernel's mode.
const modeConstant = 30

// A Kernel is a compute shader of a device.
type Kernel struct {
	name     string
	pipeline vk.Pipeline
}

// NewKernel makes a kernel of SPIR-V, with the device's float modes. mode is the value of
// specialization constant 30, and constants are those of 0, 1 and so on.
func (d *Device) NewKernel(name string, spirv []byte, mode uint32, constants ...uint32) (*Kernel, error) {
	if len(spirv)%4 != 0 {
		return nil, errNoSPIRV
	}
	code := make([]uint32, len(spirv)/4)
	for i := range code {
		code[i] = binary.LittleEndian.Uint32(spirv[4*i:])
	}
	code, err := withModes(code, d.Modes)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	module := new(vk.ShaderModule)
	minfo := &vk.ShaderModuleCreateInfo{SType: vk.TypeShaderModuleCreateInfo, Size: uintptr(4 * len(code)), Code: &code[0]}
	if err := d.f.CreateShaderModule(d.handle, minfo, nil, module).Err("shader " + name); err != nil {
		return nil, err
	}
	defer d.f.DestroyShaderModule(d.handle, *module, nil)
	info := &vk.ComputePipelineCreateInfo{SType: vk.TypeComputePipelineCreateInfo, Layout: d.layout, BaseIndex: -1,
		Stage: vk.PipelineShaderStageCreateInfo{SType: vk.TypePipelineShaderStageCreateInfo, Stage: vk.ShaderStageCompute, Module: *module, Name: cstring("main")}}
	values := append(constants[:len(constants):len(constants)], mode)
	entries := make([]vk.SpecializationMapEntry, len(values))
	for i := range entries {
		entries[i] = vk.SpecializationMapEntry{ID: uint32(i), Offset: uint32(4 * i), Size: 4}
	}
	entries[len(constants)].ID = modeConstant
	info.Stage.Specialization = &vk.SpecializationInfo{Count: uint32(len(entries)), Entries: &entries[0], Size: uintptr(4 * len(values)),
		Data: unsafe.Pointer(&values[0])}
	k := &Kernel{name: name}
	if err := d.f.CreateComputePipelines(d.handle, 0, 1, info, nil, &k.pipeline).Err("pipeline " + name); err != nil {
		return nil, err
	}
	d.kernels = append(d.kernels, k)
	return k, nil
}

// Commands is a recorded sequence. It can run any number of times.
type Commands struct {
	d     *Device
	parts []submission
	args  *[pushBytes]byte
	err   error
}

// A submission is what the device takes at once. It signals the fence when it is done.
type submission struct {
	handle vk.CommandBuffer
	fence  vk.Fence
}

// Record records what f calls. Each dispatch sees what the ones before it wrote.
func (d *Device) Record(f func(c *Commands)) (*Commands, error) {
	c := &Commands{d: d, args: new([pushBytes]byte)}
	c.begin()
	f(c)
	c.end()
	if c.err != nil {
		c.Free()
		return nil, c.err
	}
	return c, nil
}

// Cut ends what the device takes at once. Drivers of devices that also show the screen stop a
// submission that takes seconds.
func (c *Commands) Cut() {
	c.end()
	c.begin()
}

func (c *Commands) now() vk.CommandBuffer { return c.parts[len(c.parts)-1].handle }

func (c *Commands) begin() {
	part := new(submission)
	alloc := &vk.CommandBufferAllocateInfo{SType: vk.TypeCommandBufferAllocateInfo, Pool: c.d.pool, Count: 1}
	c.Fail(c.d.f.AllocateCommandBuffers(c.d.handle, alloc, &part.handle).Err("command buffer"))
	c.Fail(c.d.f.CreateFence(c.d.handle, &vk.FenceCreateInfo{SType: vk.TypeFenceCreateInfo}, nil, &part.fence).Err("fence"))
	c.parts = append(c.parts, *part)
	if c.err == nil {
		c.Fail(c.d.f.BeginCommandBuffer(c.now(), &vk.CommandBufferBeginInfo{SType: vk.TypeCommandBufferBeginInfo}).Err("recording"))
	}
	c.barrier() // what an earlier submission, or the host, wrote
}

func (c *Commands) end() {
	if c.err == nil {
		c.Fail(c.d.f.EndCommandBuffer(c.now()).Err("recording"))
	}
}

// Fail makes Record return err.
func (c *Commands) Fail(err error) { c.err = errors.Join(c.err, err) }

// patience bounds the time that a device may take for each submission, such as one layer of a pass.
// A driver that itself stops what takes long does so after seconds.
const patience = 2 * time.Minute

// Run runs the commands and waits. After an error that is not about memory the device is lost.
func (c *Commands) Run() error {
	d := c.d
	err := error(vk.DeviceLost)
	if !d.lost {
		err = c.run()
	}
	if err != nil && !errors.Is(err, vk.OutOfDeviceMemory) && !errors.Is(err, vk.OutOfHostMemory) {
		d.lost = true
	}
	return err
}

func (c *Commands) run() error {
	d := c.d
	for i, p := range c.parts {
		submit := &vk.SubmitInfo{SType: vk.TypeSubmitInfo, BufferCount: 1, Buffers: &c.parts[i].handle}
		if err := d.f.QueueSubmit(d.queue, 1, submit, p.fence).Err("submission"); err != nil {
			if i > 0 { // what was submitted is still running
				d.lost = true
			}
			return err
		}
	}
	for i := range c.parts {
		fence := &c.parts[i].fence
		if err := d.f.WaitForFences(d.handle, 1, fence, 1, uint64(patience)).Err("waiting for the device"); err != nil {
			d.lost = true // whatever the error is, it may still be running
			return err
		}
		if err := d.f.ResetFences(d.handle, 1, fence).Err("fence"); err != nil {
			return err
		}
	}
	return nil
}

// Free releases the commands.
func (c *Commands) Free() {
	if c.d.lost {
		return
	}
	for i := range c.parts {
		if c.parts[i].handle != 0 {
			c.d.f.FreeCommandBuffers(c.d.handle, c.d.pool, 1, &c.parts[i].handle)
		}
		c.d.f.DestroyFence(c.d.handle, c.parts[i].fence, nil) // nothing, if there is none
	}
}

// Run records, runs and frees.
func (d *Device) Run(f func(c *Commands)) error {
	if d.lost {
		return vk.DeviceLost.Err("the device failed before")
	}
	c, err := d.Record(f)
	if err != nil {
		return err
	}
	defer c.Free()
	return c.Run()
}

// groupsMost is the number of workgroups in one dimension that every device takes.
const groupsMost = 65535

// Line returns the x and y of a dispatch of n workgroups that take their number from both.
func Line(n int) (x, y int) {
	x = min(n, groupsMost)
	return x, (n + x - 1) / max(x, 1)
}

// Dispatch runs x·y·z workgroups of a kernel. Arguments are Words (8 bytes, the address), int,
// uint32 and float32 (4 bytes each), in the order of the shader's push constants. Addresses come
// first, so that all are aligned.
func (c *Commands) Dispatch(k *Kernel, x, y, z int, args ...any) {
	if x == 0 || y == 0 || z == 0 || c.err != nil {
		return
	}
	if x > groupsMost || y > groupsMost || z > groupsMost {
		c.Fail(fmt.Errorf("vulkan: kernel %s: %d·%d·%d workgroups, at most %d in each dimension", k.name, x, y, z, groupsMost))
		return
	}
	n := 0
	for _, a := range args {
		switch a := a.(type) {
		case Words:
			binary.LittleEndian.PutUint64(c.args[n:], a.Address())
			n += 8
		case int:
			binary.LittleEndian.PutUint32(c.args[n:], uint32(a))
			n += 4
		case float32:
			binary.LittleEndian.PutUint32(c.args[n:], math.Float32bits(a))
			n += 4
		default:
			panic(fmt.Sprintf("kernel %s: argument of type %T", k.name, a))
		}
	}
	f := c.d.f
	f.CmdBindPipeline(c.now(), vk.BindPointCompute, k.pipeline)
	f.CmdPushConstants(c.now(), c.d.layout, vk.ShaderStageCompute, 0, uint32(n), unsafe.Pointer(c.args))
	f.CmdDispatch(c.now(), uint32(x), uint32(y), uint32(z))
	c.barrier()
}

// Copy copies n numbers.
func (c *Commands) Copy(dst, src Words, n int) {
	c.copy(dst, src, n)
	c.barrier()
}

// copy copies n numbers, without a barrier.
func (c *Commands) copy(dst, src Words, n int) {
	if n > 0 && c.err == nil {
		region := &vk.BufferCopy{Src: src.offset, Dst: dst.offset, Size: 4 * uint64(n)}
		c.d.f.CmdCopyBuffer(c.now(), src.b.handle, dst.b.handle, 1, region)
	}
}

// Gather packs n rows of width numbers that are stride numbers apart. A copy of as many regions
// takes milliseconds, a kernel does not.
func (c *Commands) Gather(dst, src Words, n, stride, width int) {
	if c.d.gather == nil {
		k, err := c.d.NewKernel("gather", shader.SPIRV("gather"), 0)
		if err != nil {
			c.Fail(err)
			return
		}
		c.d.gather = k
	}
	x, y := Line((n*width + 63) / 64)
	c.Dispatch(c.d.gather, x, y, 1, src, dst, n*width, stride, width)
}

// Clear sets x to +0.
func (c *Commands) Clear(x Words) {
	if x.Len > 0 && c.err == nil {
		c.d.f.CmdFillBuffer(c.now(), x.b.handle, x.offset, 4*uint64(x.Len), 0)
		c.barrier()
	}
}

// barrier makes everything written before visible to everything that follows.
func (c *Commands) barrier() {
	const (
		writes = vk.AccessShaderWrite | vk.AccessTransferWrite | vk.AccessHostWrite
		all    = writes | vk.AccessShaderRead | vk.AccessTransferRead | vk.AccessHostRead
		stages = vk.StageCompute | vk.StageTransfer | vk.StageHost
	)
	if c.err == nil {
		b := &vk.MemoryBarrier{SType: vk.TypeMemoryBarrier, Src: writes, Dst: all}
		c.d.f.CmdPipelineBarrier(c.now(), stages, stages, 0, 1, b, 0, nil, 0, nil)
	}
}
