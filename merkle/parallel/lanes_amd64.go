package parallel

import "github.com/entrain-network/entrain/exact"

// hasBlocks tells whether blocks runs on the processor of a kernel.
func hasBlocks(k exact.Kernel) bool { return k.Name() == "avx512" }

// blocks goes on with the SHA-256 of Lanes messages by n > 0 blocks of 64 bytes each. The messages lie stride bytes apart; state[i] holds word
// i of the lanes' states.
//
//go:noescape
func blocks(state *[8][Lanes]uint32, data *byte, stride uintptr, n int)
