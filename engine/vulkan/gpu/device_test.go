package gpu

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/entrain-network/entrain/engine/vulkan/vk"
)

// device opens the first device, whose functions a test may replace.
func device(t *testing.T) *Device {
	t.Helper()
	i, err := Open()
	if err == nil {
		var d *Device
		if d, err = i.Device(0); err == nil {
			t.Cleanup(i.Close)
			t.Cleanup(d.Close)
			return d
		}
	}
	t.Skipf("%v (Debian's package mesa-vulkan-drivers has a device that needs no GPU)", err)
	return nil
}

// A device that is lost in the middle of its work, or does not answer, is not asked again, and what
// it may still write to stays allocated. Too little memory is no loss.
func TestALostDeviceIsLeftAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		result vk.Result
		lost   bool
		fail   func(f *vk.DeviceFunctions, r vk.Result)
	}{
		{"submission", vk.DeviceLost, true, func(f *vk.DeviceFunctions, r vk.Result) {
			f.QueueSubmit = func(vk.Queue, uint32, *vk.SubmitInfo, vk.Fence) vk.Result { return r }
		}},
		{"no answer", vk.Timeout, true, func(f *vk.DeviceFunctions, r vk.Result) {
			f.WaitForFences = func(vk.Device, uint32, *vk.Fence, uint32, uint64) vk.Result { return r }
		}},
		{"memory of a submission", vk.OutOfDeviceMemory, false, func(f *vk.DeviceFunctions, r vk.Result) {
			f.QueueSubmit = func(vk.Queue, uint32, *vk.SubmitInfo, vk.Fence) vk.Result { return r }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := device(t)
			x, err := d.New(10)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Free()
			if err := Write(x, make([]float32, 10)); err != nil {
				t.Fatal(err)
			}
			right, freed := *d.f, 0
			defer func() { // so that the test leaves nothing behind
				*d.f, d.lost = right, false
				d.f.DeviceWaitIdle(d.handle)
			}()
			d.f.FreeMemory = func(vk.Device, vk.DeviceMemory, unsafe.Pointer) { freed++ }
			d.f.DestroyBuffer = func(vk.Device, vk.Buffer, unsafe.Pointer) { freed++ }
			c.fail(d.f, c.result)
			if err := Write(x, make([]float32, 10)); !errors.Is(err, c.result) {
				t.Errorf("the error is %v", err)
			}
			calls := 0
			d.f.QueueSubmit = func(q vk.Queue, n uint32, s *vk.SubmitInfo, f vk.Fence) vk.Result {
				calls++
				return right.QueueSubmit(q, n, s, f)
			}
			d.f.WaitForFences = right.WaitForFences
			err = Read(make([]float32, 10), x)
			if c.lost && (!errors.Is(err, vk.DeviceLost) || calls > 0) || !c.lost && (err != nil || calls == 0) {
				t.Errorf("%d submissions afterwards: %v", calls, err)
			}
			x.Free()
			if freed > 0 == c.lost {
				t.Errorf("%d times memory is freed", freed)
			}
		})
	}
}

// Memory that a device does not have is an error to which the caller has an answer, and the device
// goes on.
func TestMemoryThatIsNotThere(t *testing.T) {
	d := device(t)
	right := *d.f
	d.f.AllocateMemory = func(h vk.Device, info *vk.MemoryAllocateInfo, p unsafe.Pointer, m *vk.DeviceMemory) vk.Result {
		if info.Size > 1<<20 {
			return vk.OutOfDeviceMemory
		}
		return right.AllocateMemory(h, info, p, m)
	}
	if _, err := d.New(1 << 20); !errors.Is(err, vk.OutOfDeviceMemory) {
		t.Errorf("the error is %v", err)
	}
	x, err := d.New(1000)
	if err != nil {
		t.Fatal(err)
	}
	x.Free()
}
