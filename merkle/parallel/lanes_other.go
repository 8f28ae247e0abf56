//go:build !amd64

package parallel

import "github.com/entrain-network/entrain/exact"

// hasBlocks tells whether blocks runs on the processor of a kernel: on none.
func hasBlocks(exact.Kernel) bool { return false }

func blocks(*[8][Lanes]uint32, *byte, uintptr, int) {
	panic("parallel: no assembly for this processor")
}
