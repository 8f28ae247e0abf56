// Package codec is the seam between a gradient and what the members of a run send each other for
// it.
//
// A Codec turns a member's gradient into a payload (Encode), refuses payloads which are not exactly
// what Encode can write (Check), and moves the parameters by the set of payloads that was accepted
// for a round (Apply):
//
//	member 1   gradient, state -> Encode -> payload 1 ┐
//	member 2   gradient, state -> Encode -> payload 2 ├-> Apply -> the same parameters for all
//	...                                               ┘
//
// Everything here is exact. Encode is a function of its arguments alone, to the last bit, on every
// machine and for any number of workers: a member that doubts a payload computes it again and
// compares hashes. Apply is exact too, so that all replicas stay equal bit for bit.
//
// Each compressor is a package: codec/distro (DCT, top-k, one bit), codec/sparseloco (several local
// steps, top-k, two bits), codec/slice (a part of the parameters that is drawn after the member
// committed to all of it), and codec/dense (the whole gradient, for tests and as a baseline). They
// share Clip, Norm, CheckLR and CheckRange. A specification chooses one by its [Kind].
package codec

import (
	"errors"
	"fmt"
)

// A Codec compresses the gradients of one layout of parameters and applies what was compressed. It
// holds no state of a member or a round, and may be used by several goroutines at once.
type Codec interface {
	// StateLen is the number of float32 of private state that a member keeps from round to round. A
	// new state is all zeros.
	StateLen() int

	// Encode appends the payload for grad to dst and updates state, which holds what was not sent
	// and will be. grad is one flat slice in the order of the layout and is not changed; lr is the
	// learning rate of this step. If grad holds a NaN or an infinity the error wraps ErrNotFinite.
	// After an error nothing was appended and state is as before. It panics if a slice has the
	// wrong length.
	Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error)

	// Check returns nil if payload is well formed, and otherwise what is wrong with it. All that
	// Encode writes is well formed, no two well-formed payloads mean the same update, and Apply
	// takes no others. It allocates nothing but the error, whatever the bytes.
	Check(payload []byte) error

	// PayloadMax is the length in bytes of the longest payload that passes Check.
	PayloadMax() int

	// Apply moves params by the payloads of one round, in the canonical order given by the caller,
	// at learning rate lr. Every member counts in every coefficient, whether it sent it or not, so
	// that nobody gains weight by sending what no other sends. Weight decay is done here, on every
	// replica, not by those who trained. Without payloads nothing changes. All payloads are checked
	// first: after an error params is as before. It panics if params has the wrong length.
	Apply(params []float32, payloads [][]byte, lr float32) error
}

// ErrNotFinite is wrapped by the error of Encode when the gradient or the state holds a NaN or an
// infinity: the batch must be skipped.
var ErrNotFinite = errors.New("not a finite number")

// ErrTooLarge is wrapped by the error of Encode when the gradient or the state is finite and beyond
// what a codec computes with.
var ErrTooLarge = errors.New("too large")

// Limits of what a codec takes.
const (
	// PayloadsMax bounds the payloads in a round. It is above the 10,000 members of a run, and a
	// float32 holds sums of that many signs exactly.
	PayloadsMax = 1 << 16
	// LRMax bounds the learning rate. It is far above any that trains, and no product with it
	// overflows.
	LRMax = 1 << 10
	// NormMax bounds the Euclidean norm of a gradient before clipping. Only a broken gradient is
	// above it, and no sum below it overflows.
	NormMax = 1 << 60
)

// CheckLR returns an error unless lr is a number in [0, LRMax] with lr*weightDecay at most 1.
// Beyond that, decay would turn weights around.
func CheckLR(lr, weightDecay float32) error {
	if !(lr >= 0 && lr <= LRMax) { // written so that NaN fails
		return fmt.Errorf("learning rate %v is not in [0, %d]", lr, LRMax)
	}
	if lr*weightDecay > 1 {
		return fmt.Errorf("learning rate %v with weight decay %v would turn weights around: their product must not exceed 1", lr, weightDecay)
	}
	return nil
}

// CheckRange returns an error unless v, the setting of that name, is a number in [0, max].
func CheckRange(name string, v, max float32) error {
	if !(v >= 0 && v <= max) { // written so that NaN fails
		return fmt.Errorf("%s is %v, it must be in [0, %v]", name, v, max)
	}
	return nil
}

// CheckSet returns an error unless Apply may go on: CheckLR passes, there are at most PayloadsMax
// payloads, and each passes check.
func CheckSet(check func(payload []byte) error, payloads [][]byte, lr, weightDecay float32) error {
	if err := CheckLR(lr, weightDecay); err != nil {
		return err
	}
	if len(payloads) > PayloadsMax {
		return fmt.Errorf("%d payloads in a round, more than %d", len(payloads), PayloadsMax)
	}
	for i, p := range payloads {
		if err := check(p); err != nil {
			return fmt.Errorf("payload %d of %d: %w", i, len(payloads), err)
		}
	}
	return nil
}

// Keep returns 1 - lr*weightDecay, the factor by which weight decay multiplies every weight in a
// step, each operation rounded to binary32.
func Keep(lr, weightDecay float32) float32 { return 1 - float32(lr*weightDecay) }
