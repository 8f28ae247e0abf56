//go:build !amd64 && !arm64

package exact

func processorKernels() []Kernel { return nil }
