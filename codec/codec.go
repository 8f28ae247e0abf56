// Package codec defines how gradients become payloads that members exchange, and how payloads
// become an update of the parameters.
//
// A Codec turns a member's gradient into a payload (Encode), refuses payloads that Encode cannot
// write (Check), and updates the parameters from the payloads accepted in a round (Apply):
//
//	member 1   gradient, state -> Encode -> payload 1 ┐
//	member 2   gradient, state -> Encode -> payload 2 ├-> Apply -> the same parameters for all
//	...                                               ┘
//
// Codecs are exact: the result of Encode and Apply depends only on their arguments, to the last
// bit, on every machine and for any number of workers. A member that doubts a payload computes it
// again and compares hashes, and all copies of the parameters stay equal.
//
// Each codec is a package: codec/distro (DCT, top-k, one bit), codec/sparseloco (several local
// steps, top-k, two bits), and codec/slice (a part of the parameters that is drawn after the member
// committed to all of it). A specification names one by its [Kind]. Studies and tests compare them
// with codec/dense, the whole gradient.
package codec

import (
	"errors"
	"fmt"
)

// A Codec compresses the gradients of one layout of parameters and applies the result. It holds no
// state of a member or a round and is safe for concurrent use.
type Codec interface {
	// StateLen returns the number of float32 of private state that a member keeps between rounds. A
	// new state is all zeros.
	StateLen() int

	// Encode appends the payload for grad to dst and updates state, which holds what is still to be
	// sent. grad is flat, in the order of the layout, and is not changed. lr is the learning rate
	// of the step. The error wraps ErrNotFinite if grad or state holds a NaN or an infinity. If it
	// fails, dst and state are unchanged. Encode panics if a slice has the wrong length.
	Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error)

	// Check returns an error unless payload is well formed. Everything that Encode writes is well
	// formed, and no two well-formed payloads mean the same update. Check allocates nothing except
	// the error.
	Check(payload []byte) error

	// PayloadMax returns the length in bytes of the longest payload that passes Check.
	PayloadMax() int

	// Apply updates params from the payloads of one round, in the canonical order given by the
	// caller, with learning rate lr. A coefficient is averaged over all members, whether they sent
	// it or not, so that nobody gains weight by sending what others do not. Apply also decays
	// weights. Without payloads it changes nothing. It checks all payloads first; if it fails,
	// params is unchanged. It panics if params has the wrong length.
	Apply(params []float32, payloads [][]byte, lr float32) error
}

// ErrNotFinite reports that the gradient or the state holds a NaN or an infinity. The member skips
// the batch.
var ErrNotFinite = errors.New("not a finite number")

// ErrTooLarge reports that the gradient or the state is finite but larger than the codec can
// compute with.
var ErrTooLarge = errors.New("too large")

// Limits of a codec's input.
const (
	// PayloadsMax is the most payloads in a round. It is above the 10,000 members of a run, and a
	// float32 holds sums of as many signs exactly.
	PayloadsMax = 1 << 16
	// LRMax is the greatest learning rate. It is far above any useful one, and no product with it
	// overflows.
	LRMax = 1 << 10
	// NormMax is the greatest Euclidean norm of a gradient before clipping. Only a broken gradient
	// exceeds it, and no sum below it overflows.
	NormMax = 1 << 60
)

// CheckLR returns an error unless lr is in [0, LRMax] and lr*weightDecay is at most 1. A greater
// product would reverse the sign of weights.
func CheckLR(lr, weightDecay float32) error {
	if !(lr >= 0 && lr <= LRMax) { // written so that NaN fails
		return fmt.Errorf("learning rate %v is not in [0, %d]", lr, LRMax)
	}
	if lr*weightDecay > 1 {
		return fmt.Errorf("learning rate %v times weight decay %v exceeds 1", lr, weightDecay)
	}
	return nil
}

// CheckRange returns an error unless v, the setting with the given name, is in [0, max].
func CheckRange(name string, v, max float32) error {
	if !(v >= 0 && v <= max) { // written so that NaN fails
		return fmt.Errorf("%s is %v, it must be in [0, %v]", name, v, max)
	}
	return nil
}

// CheckSet returns an error unless lr passes CheckLR, there are at most PayloadsMax payloads, and
// each passes check.
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

// CheckRanges returns an error unless there are at most PayloadsMax ranges of payloads and each
// has want bytes.
func CheckRanges(ranges [][]byte, want int) error {
	if len(ranges) > PayloadsMax {
		return fmt.Errorf("%d payloads in a round, more than %d", len(ranges), PayloadsMax)
	}
	for i, r := range ranges {
		if len(r) != want {
			return fmt.Errorf("range %d of %d has %d bytes, want %d", i, len(ranges), len(r), want)
		}
	}
	return nil
}

// Keep returns 1 - lr*weightDecay, the factor by which weight decay multiplies every weight in a
// step, rounding each operation to binary32.
func Keep(lr, weightDecay float32) float32 { return 1 - float32(lr*weightDecay) }
