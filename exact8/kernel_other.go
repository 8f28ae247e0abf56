//go:build !amd64 && !arm64

package exact8

import "github.com/entrain-network/entrain/exact"

// kernelsOf returns the kernels for pools with a kernel of package exact, the fastest first.
func kernelsOf(exact.Kernel) []kernel { return []kernel{plain} }
