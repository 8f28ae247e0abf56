package spec

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Resume is where the training stood whose checkpoint a run goes on from; `entrain run create --resume` fills it in. The learning rate, the data
// and the size of the batch then go on from there, and so does the optimizer of each member that is named.
type Resume struct {
	Step     uint32 `toml:"step"`     // steps that were done
	Sequence uint64 `toml:"sequence"` // sequences that were given out
	// States is with which optimizer state a member's first result may begin, hex by key in hex.
	// The others begin afresh.
	States map[string]string `toml:"states,omitempty"`
}

// ResumeStatesMax is how many states a specification has room for.
const ResumeStatesMax = 400

// Before is how many steps were done before the run.
func (s Spec) Before() uint32 {
	if s.Resume == nil {
		return 0
	}
	return s.Resume.Step
}

// First is the number of the first sequence that the run trains on.
func (s Spec) First() uint64 {
	if s.Resume == nil {
		return 0
	}
	return s.Resume.Sequence
}

// States is with which optimizer state a member's first result may begin, besides the fresh one.
// The specification was checked.
func (s Spec) States() map[key.Public]wire.Hash {
	states := make(map[key.Public]wire.Hash)
	if s.Resume == nil {
		return states
	}
	for member, state := range s.Resume.States {
		k, err := wire.ParseHash(member)
		h, fault := wire.ParseHash(state)
		if err == nil && fault == nil {
			states[key.Public(k)] = h
		}
	}
	return states
}

// checkResume reports what is wrong with where training stood; each fault begins with a key.
func (s Spec) checkResume() (faults []error) {
	r := s.Resume
	if r == nil {
		return nil
	}
	if s.Model.From == "" {
		faults = append(faults, errors.New("step: a run that resumes goes on from the parameters of a checkpoint: model.from is missing"))
	}
	if r.Step >= s.Steps {
		faults = append(faults, fmt.Errorf("step: %d of steps = %d are done, none is left: make steps larger", r.Step, s.Steps))
	}
	if r.Sequence > sequencesMax {
		faults = append(faults, fmt.Errorf("sequence: %d is more than %d", r.Sequence, uint64(sequencesMax)))
	}
	if len(r.States) > ResumeStatesMax {
		faults = append(faults, fmt.Errorf("states: %d are more than %d", len(r.States), ResumeStatesMax))
	}
	for member, state := range r.States {
		for _, hex := range []string{member, state} {
			if h, err := wire.ParseHash(hex); err != nil || h.IsZero() {
				faults = append(faults, fmt.Errorf("states: %.80q is not a key or hash of 64 hexadecimal digits", hex))
			}
		}
	}
	return faults
}

// sequencesMax is beyond all data: with what a run gives out itself it can still be counted.
const sequencesMax = 1 << 60

// resume has the batch grow on from where it was. Its size is that of the ramp without
// interruption, or one less where the ramp's division left a remainder when training stopped.
func (s Spec) resume(c *coordinator.Config) {
	given := s.First()
	hi, tokens := bits.Mul64(given, uint64(c.SequenceTokens))
	switch {
	case given == 0 || c.BatchRampTokens == 0 || c.BatchEnd < c.BatchStart:
	case hi > 0 || tokens >= c.BatchRampTokens:
		c.BatchStart, c.BatchRampTokens = c.BatchEnd, 0
	default:
		hi, lo := bits.Mul64(uint64(c.BatchEnd-c.BatchStart), tokens)
		grown, _ := bits.Div64(hi, lo, c.BatchRampTokens)
		c.BatchStart += uint32(grown)
		c.BatchRampTokens -= tokens
	}
}
