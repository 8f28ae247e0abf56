package founding

import (
	"fmt"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Aggregate compares what a member receives of a round's results, for each value of
// exchange.aggregate, in a run that has as many members as it can have.
type Aggregate struct {
	Members   uint32 `json:"members"`
	Witnesses uint32 `json:"witnesses"`
	None      uint64 `json:"none_bytes"`
	Update    uint64 `json:"update_bytes"`    // received by a follower
	Followers uint64 `json:"followers_bytes"` // by a member on average: it is a witness now and then
	// Slices is what each receives of results if updates are made in slices, elected or not, and
	// Choices what it would with other numbers of aggregators; nil if they are not.
	Slices  *Sliced  `json:"slices,omitempty"`
	Choices []Sliced `json:"choices,omitempty"`
	Chosen  string   `json:"chosen"`
}

// newAggregate returns the comparison, nil if the run has no choice.
func newAggregate(s spec.Spec, needs trainer.Sizes) *Aggregate {
	if s.Buckets() || needs.Update == 0 {
		return nil
	}
	c := newTheft(s).Committee
	a := Aggregate{Members: c.Members, Witnesses: c.Witnesses, Chosen: s.Exchange.Aggregate}
	a.None = uint64(a.Members-min(a.Members, 1)) * needs.Payload
	a.Update = needs.Update
	if own, choices := sliced(s, needs); choices != nil {
		a.Slices, a.Choices = &own, choices
	}
	a.Followers = min(a.None, a.Update+client.VouchRounds*uint64(a.Witnesses)*needs.Payload)
	if a.Chosen == "" {
		a.Chosen = spec.AggregateNone
		if a.Followers < a.None {
			a.Chosen = spec.AggregateFollowers
		}
	}
	return &a
}

// chooseAggregate sets exchange.aggregate to followers if the author left it open and that is
// better. It reports whether it did.
func chooseAggregate(s *spec.Spec) (bool, error) {
	if s.Exchange.Aggregate != "" || !s.Optimizer.Kind().Followable {
		return false, nil
	}
	needs, err := trainer.SizesOf(*s)
	if err != nil {
		return false, err
	}
	if a := newAggregate(*s, needs); a == nil || a.Chosen != spec.AggregateFollowers {
		return false, nil
	}
	s.Exchange.Aggregate = spec.AggregateFollowers
	return true, nil
}

// String describes the comparison in sentences.
func (a Aggregate) String() string {
	if a.Slices != nil {
		return fmt.Sprintf("With %d members, updates are made in slices. %s With exchange.aggregate = %q that would be %s on average, and %s for a member that is elected.",
			a.Members, a.Slices, spec.AggregateFollowers, view.Bytes(a.Followers),
			view.Bytes(client.VouchRounds*uint64(a.Slices.Results)*(a.None/uint64(a.Members-1))))
	}
	return fmt.Sprintf("With %d members each receives %s a round; with exchange.aggregate = %q %s on average, and %s while it is not elected. The run has %q.",
		a.Members, view.Bytes(a.None), spec.AggregateFollowers, view.Bytes(a.Followers), view.Bytes(a.Update), a.Chosen)
}
