package bloom

import "math/bits"

// Limits of Size.
const (
	ItemsMax     = 1 << 14 // more than the members of the largest run, 10,000
	WitnessesMax = 32      // the seats of the largest run; C(32, 16) fits 30 bits
	BitsMax      = 1 << 21 // 256 KiB, above what Size returns for ItemsMax and any number of witnesses
)

// securityBits sets the bound: a round goes wrong with probability below 2^-securityBits.
const securityBits = 40

// Size returns the dimensions of the filters of a round in which each witness reports up to the
// given number of items, and an item counts as held once quorum filters confirm it.
//
// The bound: up to f = witnesses - quorum of the witnesses lie and confirm any item. A
// wrong item still needs quorum-f of the honest filters, each of which confirms it with probability
// at most p = 2^-Hashes, independently, if it is Plausible. There are C(quorum, f) choices of those
// filters (quorum witnesses being honest) and, say, as many wrong items as right ones. So something
// wrong is accepted in a round with probability at most
//
//	items * C(quorum, quorum-f) * p^(quorum-f)  <  2^-40.
//
// If no witness lies the probability is smaller still. A forger that tries g commitments after
// having seen the filters multiplies it by g, and each try must still reach the others in time.
//
// Hashes is the smallest number that satisfies this with a bit to spare. Bits is at least twice
// items * Hashes, so an honest filter is always Plausible. (The textbook's 1.44 bits a hash would
// save a quarter of the size, but then chance alone would make some honest filters more than half
// full, and p would hold on average only.)
//
// It panics when the quorum is not more than half of the witnesses and at most all, or when a limit
// is exceeded: the caller checks its configuration.
func Size(items, witnesses, quorum uint32) Params {
	if items > ItemsMax || witnesses > WitnessesMax {
		panic("bloom: more items or witnesses than a filter is meant for")
	}
	if quorum > witnesses || 2*quorum <= witnesses {
		panic("bloom: quorum is not a majority of the witnesses")
	}
	items = max(items, 1)
	f := witnesses - quorum
	honest := quorum - f
	// bits.Len exceeds the logarithm to base 2.
	exponent := securityBits + 1 + uint32(bits.Len32(items)) + uint32(bits.Len64(choose(quorum, honest)))
	hashes := (exponent + honest - 1) / honest
	return Params{Bits: (2*items*hashes + 63) / 64 * 64, Hashes: uint8(hashes)}
}

// choose returns the binomial coefficient C(n, k), for k <= n <= WitnessesMax.
func choose(n, k uint32) uint64 {
	c := uint64(1)
	for i := uint64(1); i <= uint64(k); i++ {
		c = c * (uint64(n) - uint64(k) + i) / i // C(n-k+i, i): every step divides evenly
	}
	return c
}
