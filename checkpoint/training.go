package checkpoint

import (
	"fmt"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/canonical"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Training is what a run needs besides the parameters to resume from a checkpoint as if it had
// never stopped: its position in the data, and the optimizer state of each member. The manifest
// holds the number of steps that the parameters have seen.
//
// It is a function of what the run agreed on, so all members write the same bytes, and the manifest
// binds it. The states themselves are private to each member: see Optimizer.
type Training struct {
	Version   int        `json:"version"`
	Data      wire.Hash  `json:"data"`            // of the data set's manifest
	Order     wire.Hash  `json:"order"`           // the seed of the order of its sequences
	Tokens    uint32     `json:"sequence_tokens"` // in a sequence
	Sequence  uint64     `json:"sequence"`        // number of the next sequence to train on
	Codec     string     `json:"codec"`
	Optimizer uint64     `json:"optimizer"` // floats in a member's optimizer state
	States    []Momentum `json:"states"`    // by key, ascending; a member not listed starts afresh
}

// Momentum identifies the optimizer state at the end of a member's accepted result of the last
// step.
type Momentum struct {
	Member key.Public `json:"member"`
	State  wire.Hash  `json:"state"` // merkle.BlobRoot
}

// Bytes returns the canonical bytes of t.
func (t Training) Bytes() []byte {
	if t.States == nil {
		t.States = []Momentum{}
	}
	return canonical.JSON(t)
}

// parseTraining reads canonical bytes. It refuses all others, and anything that Check refuses.
func parseTraining(b []byte) (Training, error) {
	return canonical.Parse[Training](b, TrainingFile, trainingBytesMax)
}

// Check returns what is wrong with t, or nil.
func (t Training) Check() error {
	switch {
	case t.Version != Version:
		return fmt.Errorf("unknown version %d, want %d", t.Version, Version)
	case t.Tokens == 0:
		return fmt.Errorf("sequences of no tokens")
	case !printable(t.Codec):
		return fmt.Errorf("codec %.80q is not a printable name of 1 to %d bytes", t.Codec, RunBytesMax)
	case len(t.States) > statesMax:
		return fmt.Errorf("%d states are more than %d", len(t.States), statesMax)
	}
	for i, s := range t.States {
		if i > 0 && s.Member.Compare(t.States[i-1].Member) <= 0 {
			return fmt.Errorf("states[%d]: member %s is repeated or not in order", i, s.Member)
		}
	}
	return nil
}

// sorted returns t with its states in order.
func (t Training) sorted() Training {
	t.States = slices.Clone(t.States)
	sort.Slice(t.States, func(i, j int) bool { return t.States[i].Member.Compare(t.States[j].Member) < 0 })
	return t
}

// Training reads how a run resumes from the checkpoint; the error is fs.ErrNotExist if the
// checkpoint has no such file.
func (s *Saved) Training() (Training, error) {
	b, err := s.File(TrainingFile, trainingBytesMax)
	if err != nil {
		return Training{}, err
	}
	return parseTraining(b)
}
