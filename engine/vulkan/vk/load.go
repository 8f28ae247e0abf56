//go:build !static && (linux || darwin || windows) && (amd64 || arm64)

package vk

import (
	"fmt"
	"reflect"
	"runtime"

	"github.com/ebitengine/purego"
)

// libraries returns the names of the Vulkan loader. On macOS MoltenVK may be there instead.
func libraries() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"vulkan-1.dll"}
	case "darwin":
		return []string{"libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib", "/opt/homebrew/lib/libvulkan.1.dylib", "libMoltenVK.dylib"}
	default:
		return []string{"libvulkan.so.1", "libvulkan.so"}
	}
}

// Load opens the Vulkan loader. A machine without one is an error.
func Load() (*Loader, error) {
	var first error
	for _, name := range libraries() {
		lib, err := openLibrary(name)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		address, err := symbol(lib, "vkGetInstanceProcAddr")
		if err != nil {
			return nil, fmt.Errorf("vulkan: %w", err)
		}
		l := new(Loader)
		purego.RegisterFunc(&l.address, address)
		return l, fill(l, func(name string) uintptr { return l.address(0, name) })
	}
	return nil, fmt.Errorf("vulkan: its loader is not installed (on Debian the package libvulkan1, elsewhere it comes with the GPU's driver): %w", first)
}

// Instance loads the functions of an instance.
func (l *Loader) Instance(i Instance) (*Functions, error) {
	f := new(Functions)
	return f, fill(f, func(name string) uintptr { return l.address(i, name) })
}

// Device loads the functions of a device.
func (f *Functions) Device(device Device) (*DeviceFunctions, error) {
	d := new(DeviceFunctions)
	return d, fill(d, func(name string) uintptr { return f.GetDeviceProcAddr(device, name) })
}

// fill sets the exported fields of a structure of functions: field X to the function vkX. Optional
// ones stay nil if there is none.
func fill(functions any, address func(name string) uintptr) error {
	v := reflect.ValueOf(functions).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		a := address("vk" + field.Name)
		if a == 0 && field.Tag.Get("vk") == "optional" {
			continue
		}
		if a == 0 {
			return fmt.Errorf("vulkan: there is no vk%s", field.Name)
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), a)
	}
	return nil
}
