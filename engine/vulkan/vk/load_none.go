//go:build static || !(linux || darwin || windows) || !(amd64 || arm64)

package vk

import "errors"

var errNone = errors.New("vulkan: this program cannot load drivers, because it is linked statically or for a system without Vulkan: on Linux with glibc, entrain-gpu-linux-* of the same release can, and so can the package for Debian (docs/gpu/README.md)")

// Load returns an error: this program cannot open the Vulkan loader.
func Load() (*Loader, error) { return nil, errNone }

// Instance returns an error.
func (l *Loader) Instance(Instance) (*Functions, error) { return nil, errNone }

// Device returns an error.
func (f *Functions) Device(Device) (*DeviceFunctions, error) { return nil, errNone }
