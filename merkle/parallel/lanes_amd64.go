package parallel

import "github.com/entrain-network/entrain/exact"

// hasBlocks reports whether the processor of kernel k can run blocks.
func hasBlocks(k exact.Kernel) bool { return k.Name() == "avx512" }

// blocks updates the SHA-256 states of Lanes messages with n > 0 blocks of 64 bytes each. The
// messages lie stride bytes apart. state[i] holds word i of the lanes' states.
//
//go:noescape
func blocks(state *[8][Lanes]uint32, data *byte, stride uintptr, n int)
