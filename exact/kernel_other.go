//go:build (!amd64 && !arm64) || sbf

package exact

func processorKernels() []Kernel { return nil }
