package gpu

import (
	"fmt"
	"unsafe"

	"github.com/entrain-network/entrain/engine/vulkan/vk"
)

// A Buffer is memory of the device. Kernels take its address.
type Buffer struct {
	d       *Device
	address uint64
	handle  vk.Buffer
	memory  vk.DeviceMemory
	mapped  unsafe.Pointer // nil where the host cannot see it
}

// A Words is a part of a buffer, of 32-bit numbers.
type Words struct {
	b      *Buffer
	offset uint64 // in bytes
	Len    int
}

// At returns the part of x that begins with element i.
func (x Words) At(i int) Words { return Words{x.b, x.offset + 4*uint64(i), x.Len - i} }

// First returns the first n elements of x.
func (x Words) First(n int) Words { return Words{x.b, x.offset, n} }

// Offset returns the number of elements of the buffer before x.
func (x Words) Offset() int { return int(x.offset / 4) }

// Address returns where x begins, for kernels that read addresses from memory.
func (x Words) Address() uint64 { return x.b.address + x.offset }

// New allocates n 32-bit numbers on the device. Their values are undefined. An error wraps
// vk.OutOfDeviceMemory if there is no room.
func (d *Device) New(n int) (Words, error) {
	b, err := d.newBuffer(4*uint64(max(n, 1)), vk.MemoryDeviceLocal, 0)
	if err != nil {
		return Words{}, err
	}
	return Words{b, 0, n}, nil
}

// newBuffer allocates memory of a type with all flags of need, and if possible all of want.
func (d *Device) newBuffer(size uint64, need, want uint32) (*Buffer, error) {
	b := &Buffer{d: d}
	info := &vk.BufferCreateInfo{SType: vk.TypeBufferCreateInfo, Size: size,
		Usage: vk.BufferTransferSrc | vk.BufferTransferDst | vk.BufferStorage | vk.BufferDeviceAddress}
	if err := d.f.CreateBuffer(d.handle, info, nil, &b.handle).Err("buffer"); err != nil {
		return nil, err
	}
	err := d.bind(b, need, want)
	if err != nil {
		b.free()
		return nil, fmt.Errorf("%d bytes: %w", size, err)
	}
	return b, nil
}

// bind gives a buffer its memory.
func (d *Device) bind(b *Buffer, need, want uint32) error {
	req := new(vk.MemoryRequirements)
	d.f.GetBufferMemoryRequirements(d.handle, b.handle, req)
	kind := -1
	for i := range d.memory.TypeCount {
		flags := d.memory.Types[i].Flags
		if req.TypeBits>>i&1 == 1 && flags&need == need && (kind < 0 || flags&want == want && d.memory.Types[kind].Flags&want != want) {
			kind = int(i)
		}
	}
	if kind < 0 {
		return fmt.Errorf("vulkan: no memory of kind %#x", need)
	}
	flags := &vk.MemoryAllocateFlagsInfo{SType: vk.TypeMemoryAllocateFlagsInfo, Flags: vk.AllocateDeviceAddress}
	alloc := &vk.MemoryAllocateInfo{SType: vk.TypeMemoryAllocateInfo, PNext: unsafe.Pointer(flags), Size: req.Size, Type: uint32(kind)}
	if err := d.f.AllocateMemory(d.handle, alloc, nil, &b.memory).Err("memory"); err != nil {
		return err
	}
	if err := d.f.BindBufferMemory(d.handle, b.handle, b.memory, 0).Err("binding of memory"); err != nil {
		return err
	}
	b.address = d.f.GetBufferDeviceAddress(d.handle, &vk.BufferDeviceAddressInfo{SType: vk.TypeBufferDeviceAddressInfo, Buffer: b.handle})
	if need&vk.MemoryHostVisible != 0 {
		return d.f.MapMemory(d.handle, b.memory, 0, vk.WholeSize, 0, &b.mapped).Err("mapping of memory")
	}
	return nil
}

// free releases the buffer. Destroying what was never made does nothing.
func (b *Buffer) free() {
	if b == nil || b.d.lost {
		return
	}
	b.d.f.DestroyBuffer(b.d.handle, b.handle, nil)
	b.d.f.FreeMemory(b.d.handle, b.memory, nil)
}

// Free releases the whole buffer that x is a part of. Freeing the zero Words does nothing.
func (x Words) Free() { x.b.free() }

// stagingBytes is the number of bytes that pass through host-visible memory at a time.
const stagingBytes = 16 << 20

// stage returns the memory through which everything passes.
func stage[T word](d *Device) ([]T, *Buffer, error) {
	if d.staging == nil {
		b, err := d.newBuffer(stagingBytes, vk.MemoryHostVisible|vk.MemoryHostCoherent, vk.MemoryHostCached)
		if err != nil {
			return nil, nil, err
		}
		d.staging = b
	}
	return unsafe.Slice((*T)(d.staging.mapped), stagingBytes/4), d.staging, nil
}

// A Traffic counts the bytes that went to a device and came from it.
type Traffic struct {
	To   uint64 `json:"to"`
	From uint64 `json:"from"`
}

// Since returns what was added to t since before.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.To - before.To, t.From - before.From}
}

// Plus returns the sum of t and u.
func (t Traffic) Plus(u Traffic) Traffic { return Traffic{t.To + u.To, t.From + u.From} }

// Traffic returns what Write, Read and ReadRows have moved.
func (d *Device) Traffic() Traffic { return d.traffic }

// word is what buffers hold.
type word interface{ ~float32 | ~uint32 }

// Write copies src to the beginning of dst.
func Write[T word](dst Words, src []T) error {
	d := dst.b.d
	host, s, err := stage[T](d)
	if err != nil {
		return err
	}
	for len(src) > 0 {
		n := copy(host, src)
		if err := d.Run(func(c *Commands) { c.Copy(dst, Words{s, 0, n}, n) }); err != nil {
			return err
		}
		d.traffic.To += 4 * uint64(n)
		src, dst = src[n:], dst.At(n)
	}
	return nil
}

// partsMost is the number of parts that WriteParts copies at a time.
const partsMost = 1 << 13

// WriteParts copies each of src to the beginning of dst of the same number. All are on one device.
func WriteParts(dst []Words, src [][]float32) error {
	for len(dst) > 0 {
		d := dst[0].b.d
		host, s, err := stage[float32](d)
		if err != nil {
			return err
		}
		if len(src[0]) > len(host) {
			if err := Write(dst[0], src[0]); err != nil {
				return err
			}
			dst, src = dst[1:], src[1:]
			continue
		}
		n, filled := 0, 0
		for ; n < min(len(dst), partsMost) && filled+len(src[n]) <= len(host); n++ {
			filled += copy(host[filled:], src[n])
		}
		if err := d.Run(func(c *Commands) {
			at := 0
			for i := range n {
				c.copy(dst[i], Words{s, 4 * uint64(at), len(src[i])}, len(src[i]))
				at += len(src[i])
			}
			c.barrier()
		}); err != nil {
			return err
		}
		d.traffic.To += 4 * uint64(filled)
		dst, src = dst[n:], src[n:]
	}
	return nil
}

// Read fills dst with the beginning of src.
func Read[T word](dst []T, src Words) error {
	d := src.b.d
	host, s, err := stage[T](d)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), len(host))
		if err := d.Run(func(c *Commands) { c.Copy(Words{s, 0, n}, src, n) }); err != nil {
			return err
		}
		copy(dst, host[:n])
		d.traffic.From += 4 * uint64(n)
		src, dst = src.At(n), dst[n:]
	}
	return nil
}

// ReadParts fills each of dst with the beginning of src of the same number, a part that fits
// after the other, because an answer of the device takes longer than a small part. All are on
// one device.
func ReadParts(dst [][]float32, src []Words) error {
	for len(dst) > 0 {
		d := src[0].b.d
		host, s, err := stage[float32](d)
		if err != nil {
			return err
		}
		if len(dst[0]) > len(host) {
			if err := Read(dst[0], src[0]); err != nil {
				return err
			}
			dst, src = dst[1:], src[1:]
			continue
		}
		n, filled := 0, 0
		for ; n < min(len(dst), partsMost) && filled+len(dst[n]) <= len(host); n++ {
			filled += len(dst[n])
		}
		if err := d.Run(func(c *Commands) {
			at := 0
			for i := range n {
				c.copy(Words{s, 4 * uint64(at), len(dst[i])}, src[i], len(dst[i]))
				at += len(dst[i])
			}
			c.barrier()
		}); err != nil {
			return err
		}
		for i := range n {
			host = host[copy(dst[i], host):]
		}
		d.traffic.From += 4 * uint64(filled)
		dst, src = dst[n:], src[n:]
	}
	return nil
}

// ReadRows fills dst with rows of width floats that are stride floats apart in src.
func ReadRows(dst []float32, src Words, stride, width int) error {
	d := src.b.d
	host, s, err := stage[float32](d)
	if err != nil {
		return err
	}
	for len(dst) > 0 {
		n := min(len(dst), len(host)/width*width)
		if err := d.Run(func(c *Commands) { c.Gather(Words{s, 0, n}, src, n/width, stride, width) }); err != nil {
			return err
		}
		copy(dst, host[:n])
		d.traffic.From += 4 * uint64(n)
		dst = dst[n:]
		src.offset += 4 * uint64(n/width*stride)
	}
	return nil
}
