package study

import (
	"fmt"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Attack is what liars compress instead of their gradients. Their payloads are well formed, because
// others are refused.
type Attack string

// The attacks.
const (
	Honest Attack = "honest"
	Flip   Attack = "sign flip" // each negates its gradient
	Scale  Attack = "scaled"    // each negates its gradient and multiplies it by 1000
	Random Attack = "random"    // each sends fresh random numbers in every round
	// all negate the mean of the honest gradients, which they know
	Together Attack = "together"
	// the same, with its coefficients divided among them, the largest first
	Spread Attack = "spread"
	// all send one vector in every round, to move the weights in one direction
	Drift Attack = "drift"
)

// attacks lists the measured attacks.
func attacks() []Attack { return []Attack{Flip, Scale, Random, Together, Spread, Drift} }

// change replaces the gradients of the first members by what they send.
func (a Attack) change(grads [][]float32, attackers, step int) {
	if attackers == 0 || a == Honest {
		return
	}
	var same []float32
	switch a {
	case Together, Spread:
		same = opposite(grads[attackers:])
	case Drift:
		same = random("drift", len(grads[0]))
	}
	for m, grad := range grads[:attackers] {
		switch a {
		case Flip:
			scale(grad, -1)
		case Scale:
			scale(grad, -1000)
		case Random:
			copy(grad, random(fmt.Sprint("attacker ", m, ", step ", step), len(grad)))
		case Together, Drift:
			copy(grad, same)
		case Spread: // they share a momentum, from which each takes the largest coefficients in turn
			clear(grad)
			if m == 0 {
				copy(grad, same)
			}
		default:
			panic("study: no such attack: " + string(a))
		}
	}
}

func scale(v []float32, by float32) {
	for i := range v {
		v[i] *= by
	}
}

// opposite returns the negated mean of gradients.
func opposite(grads [][]float32) []float32 {
	sum := make([]float32, len(grads[0]))
	for _, g := range grads {
		for i, v := range g {
			sum[i] += v
		}
	}
	scale(sum, -1/float32(len(grads)))
	return sum
}

// random returns n numbers in [-1, 1).
func random(label string, n int) []float32 {
	source := prng.New(wire.Sum("entrain/bench"), label)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(int32(source.Uint64()>>32)) / (1 << 31)
	}
	return x
}
