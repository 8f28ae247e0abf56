//go:build !amd64 && !arm64

package exact8

import "github.com/entrain-network/entrain/exact"

// kernelOf returns the kernel for pools with a kernel of package exact.
func kernelOf(exact.Kernel) kernel { return plain }
