package exact

// processorKernels returns the kernel in assembly: every arm64 processor that Go supports has NEON.
func processorKernels() []Kernel {
	return []Kernel{{name: "neon", mr: 4, nr: 16, tile: tileNEON}}
}
