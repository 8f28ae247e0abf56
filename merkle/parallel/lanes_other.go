//go:build !amd64

package parallel

import "github.com/entrain-network/entrain/exact"

// hasBlocks reports whether the processor of a kernel can run blocks. None can.
func hasBlocks(exact.Kernel) bool { return false }

func blocks(*[8][Lanes]uint32, *byte, uintptr, int) {
	panic("parallel: no assembly for this processor")
}
