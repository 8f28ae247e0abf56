package checkpoint

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/canonical"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Training is what a run needs besides the parameters to go on from a checkpoint as if it had never stopped: where it was in its data, and with
// which optimizer state each member goes on. How many steps the parameters have seen is in the manifest.
//
// It is a function of what the run agreed on, so all members write the same, and the manifest binds it. The states themselves are each member's
// own: see Optimizer.
type Training struct {
	Version   int        `json:"version"`
	Data      wire.Hash  `json:"data"`            // of the data set's manifest
	Order     wire.Hash  `json:"order"`           // the seed of the order of its sequences
	Tokens    uint32     `json:"sequence_tokens"` // in a sequence
	Sequence  uint64     `json:"sequence"`        // the number of the one that is trained on next
	Codec     string     `json:"codec"`
	Optimizer uint64     `json:"optimizer"` // numbers of optimizer state that a member has
	States    []Momentum `json:"states"`    // by key, ascending; who is not named begins afresh
}

// Momentum names the optimizer state that a member's accepted result of the last step ended with.
type Momentum struct {
	Member key.Public `json:"member"`
	State  wire.Hash  `json:"state"` // merkle.BlobRoot
}

// Bytes are the canonical bytes of t.
func (t Training) Bytes() []byte {
	if t.States == nil {
		t.States = []Momentum{}
	}
	return canonical.JSON(t)
}

// ParseTraining reads canonical bytes, and refuses all others and what Check refuses.
func ParseTraining(b []byte) (Training, error) {
	return canonical.Parse[Training](b, TrainingFile, TrainingBytesMax)
}

// Check returns what is wrong with t, or nil.
func (t Training) Check() error {
	switch {
	case t.Version != Version:
		return fmt.Errorf("version %d is not known, only %d", t.Version, Version)
	case t.Tokens == 0:
		return fmt.Errorf("sequences of no tokens")
	case !printable(t.Codec):
		return fmt.Errorf("codec %.80q is not a printable name of 1 to %d bytes", t.Codec, RunBytesMax)
	case len(t.States) > StatesMax:
		return fmt.Errorf("%d states are more than %d", len(t.States), StatesMax)
	}
	for i, s := range t.States {
		if i > 0 && s.Member.Compare(t.States[i-1].Member) <= 0 {
			return fmt.Errorf("states[%d]: member %s is repeated or not in order", i, s.Member)
		}
	}
	return nil
}

// Of returns the state that a member goes on with; ok is false if it begins afresh.
func (t Training) Of(member key.Public) (state wire.Hash, ok bool) {
	for _, s := range t.States {
		if s.Member == member {
			return s.State, true
		}
	}
	return wire.Hash{}, false
}

// sorted returns t with its states in order.
func (t Training) sorted() Training {
	t.States = slices.Clone(t.States)
	slices.SortFunc(t.States, func(a, b Momentum) int { return a.Member.Compare(b.Member) })
	return t
}

// Training reads how a run goes on from the checkpoint; fs.ErrNotExist if it does not say.
func (s *Saved) Training() (Training, error) {
	b, err := s.File(TrainingFile, TrainingBytesMax)
	if err != nil {
		return Training{}, err
	}
	return ParseTraining(b)
}
