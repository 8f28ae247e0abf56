//go:build static || !(linux || darwin || windows) || !(amd64 || arm64)

package vk

import "errors"

var errNone = errors.New("vulkan: this program was built without it: with the tag static, or for a system on which it is not supported")

// Load returns an error: this program cannot open the Vulkan loader.
func Load() (*Loader, error) { return nil, errNone }

// Instance returns an error.
func (l *Loader) Instance(Instance) (*Functions, error) { return nil, errNone }

// Device returns an error.
func (f *Functions) Device(Device) (*DeviceFunctions, error) { return nil, errNone }
