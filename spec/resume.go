package spec

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Resume is the training progress of the checkpoint that a run starts from; `entrain run create
// --resume` sets it. The learning rate, the data and the batch size continue from there, and so
// does the optimizer of each member listed in States.
type Resume struct {
	Step     uint32 `toml:"step"`     // steps already done
	Sequence uint64 `toml:"sequence"` // sequences already assigned
	// States maps members' keys to the optimizer states, both in hex, from which their first results
	// may start. Other members start with a fresh state.
	States map[string]string `toml:"states,omitempty"`
}

// ResumeStatesMax is the most states a specification may list.
const ResumeStatesMax = 400

// Before returns the number of steps done before the run.
func (s Spec) Before() uint32 {
	if s.Resume == nil {
		return 0
	}
	return s.Resume.Step
}

// First returns the number of the first sequence that the run trains on.
func (s Spec) First() uint64 {
	if s.Resume == nil {
		return 0
	}
	return s.Resume.Sequence
}

// States returns the optimizer states from which members' first results may start, besides the
// fresh one. The specification must have passed Check.
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

// checkResume returns the faults of the resume table, each starting with a key.
func (s Spec) checkResume() (faults []error) {
	r := s.Resume
	if r == nil {
		return nil
	}
	if s.Model.From == "" {
		faults = append(faults, errors.New("step: a run that resumes starts from a checkpoint's parameters: model.from is missing"))
	}
	if r.Step >= s.Steps {
		faults = append(faults, fmt.Errorf("step: %d of steps = %d are done, none is left; increase steps", r.Step, s.Steps))
	}
	if r.Sequence > sequencesMax {
		faults = append(faults, fmt.Errorf("sequence: %d is more than %d", r.Sequence, uint64(sequencesMax)))
	}
	if len(r.States) > ResumeStatesMax {
		faults = append(faults, fmt.Errorf("states: there are %d, at most %d are allowed", len(r.States), ResumeStatesMax))
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

// sequencesMax exceeds any data set, and leaves room to count the sequences that the run itself
// assigns.
const sequencesMax = 1 << 60

// resume continues the batch ramp where training stopped. The batch size equals that of an
// uninterrupted ramp, or is one less where the ramp's division left a remainder.
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
