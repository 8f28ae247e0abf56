// Package prng makes seeded choices that are the same on every machine.
//
// The generator is xoshiro256** 1.0 of David Blackman and Sebastiano Vigna
// (https://prng.di.unimi.it/xoshiro256starstar.c). Its state is derived from a 32-byte seed and a
// label, which says what the choices are for, so that one seed serves many purposes without their
// choices being related:
//
//	state = the four little-endian U64s of wire.Sum("entrain/prng", seed, label)
//
// It is statistically sound and fast, but predictable: a few outputs determine all others.
// Use crypto/rand for secrets, and a seed that is still unknown for choices that must not be
// foreseen.
//
// The package is replicated (see package wire).
package prng

import (
	"encoding/binary"
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// Source is a stream of choices. A copy of a Source repeats its stream from there on. It is not for
// concurrent use. The zero Source is not valid; New makes one.
type Source struct {
	s [4]uint64 // the state; never all zero
}

// New returns the stream of seed for the purpose named by label.
func New(seed wire.Hash, label string) Source {
	h := wire.Sum("entrain/prng", seed[:], []byte(label))
	var p Source
	for i := range p.s {
		p.s[i] = binary.LittleEndian.Uint64(h[8*i:])
	}
	if p.s == [4]uint64{} {
		p.s[0] = 1 // the one state the generator never leaves; no seed leading here is known
	}
	return p
}

// State returns what Resume continues the stream from.
func (p Source) State() [4]uint64 { return p.s }

// Resume continues the stream that had this State.
func Resume(state [4]uint64) Source { return Source{state} }

// Uint64 returns the next 64 bits.
func (p *Source) Uint64() uint64 {
	s := &p.s
	out := bits.RotateLeft64(s[1]*5, 7) * 9
	t := s[1] << 17
	s[2] ^= s[0]
	s[3] ^= s[1]
	s[1] ^= s[2]
	s[0] ^= s[3]
	s[2] ^= t
	s[3] = bits.RotateLeft64(s[3], 45)
	return out
}

// Uint64n returns a number in [0, n), each equally likely. It panics when n is 0.
//
// The method is Daniel Lemire's ("Fast Random Integer Generation in an Interval", 2019, algorithm
// 5): the high word of a 128-bit product, drawn again for the few low words that would favour some
// results.
func (p *Source) Uint64n(n uint64) uint64 {
	if n == 0 {
		panic("prng: choice among no numbers")
	}
	hi, lo := product(p.Uint64(), n)
	if lo < n {
		excess := -n % n // 2^64 mod n
		for lo < excess {
			hi, lo = product(p.Uint64(), n)
		}
	}
	return hi
}

// product is bits.Mul64. Where n is short it needs half of what that costs a machine without
// products of 128 bits.
func product(x, n uint64) (hi, lo uint64) {
	if n>>32 != 0 {
		return bits.Mul64(x, n)
	}
	return (x>>32*n + x&(1<<32-1)*n>>32) >> 32, x * n
}

// Shuffle puts n things into an order each as likely as any other (Fisher and Yates, from the last
// down), calling swap to exchange the things at two indexes. It panics when n is negative.
func (p *Source) Shuffle(n int, swap func(i, j int)) {
	if n < 0 {
		panic("prng: shuffle of fewer than no things")
	}
	for i := n - 1; i > 0; i-- {
		swap(i, int(p.Uint64n(uint64(i)+1)))
	}
}
