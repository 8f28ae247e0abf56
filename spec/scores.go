package spec

import (
	"github.com/pelletier/go-toml/v2"

	"github.com/entrain-network/entrain/coordinator"
)

// Exchange is how results travel.
type Exchange struct {
	// Kind is "peers" (gossip, and blobs from peer to peer) or "bucket" (each member's own S3
	// bucket, with commitments on the chain). With "bucket" other things are the default elsewhere:
	// overlap 1, verification_percent 0, and codec "slice" with decay 1.
	Kind string `toml:"kind"`
	// WindowBlocks is how many blocks of the chain a window has, with buckets: a round's training
	// lasts exactly so long; 60 if left out. There times.round_train is only about how long that
	// is, by which members plan.
	WindowBlocks uint32 `toml:"window_blocks,omitempty"`
}

// Scores is who judges the members' work, and what it earns. Tokens are whole.
type Scores struct {
	Validators uint16 `toml:"validators,omitempty"` // seats of validators; 0: nobody scores
	Windows    uint32 `toml:"windows,omitempty"`    // rounds in a period of scores; 0: 10
	// Emission is how many tokens a period gives from the treasury to those who scored well and
	// those who scored them.
	Emission         uint64 `toml:"emission,omitempty"`
	ValidatorPercent uint8  `toml:"validator_percent,omitempty"` // of the emission, for validators
	// PenaltyPercent is what a score of 0 or less costs, of the reward that is not ripe yet, as a
	// percentage of the emission over the slots.
	PenaltyPercent uint8 `toml:"penalty_percent,omitempty"`
	// Alpha is the part of a member's newest score in a validator's moving average of its scores,
	// above 0 and at most 1; 0: 0.2.
	Alpha float64 `toml:"alpha,omitempty"`
}

// The kinds of exchange.
const (
	ExchangePeers  = "peers"
	ExchangeBucket = "bucket"
)

// windowBlocksDefault is a window of a minute where blocks come once a second.
const windowBlocksDefault = 60

// defaultFor is what is not said in this specification: Default, and where results travel through
// buckets what goes with that.
func defaultFor(text []byte) Spec {
	s := Default()
	var said struct {
		Exchange  struct{ Kind string }
		Optimizer struct{ Codec string }
	}
	if toml.Unmarshal(text, &said) != nil {
		return s
	}
	if said.Optimizer.Codec != "" {
		s.Optimizer = Optimizer{Codec: said.Optimizer.Codec} // no options if it is not known
		if k, ok := s.Optimizer.Kind(); ok {
			s.Optimizer = optimizerFor(k)
		}
	}
	if said.Exchange.Kind != ExchangeBucket {
		return s // what is wrong with its form is reported when all of it is read
	}
	s.Exchange.WindowBlocks = windowBlocksDefault
	s.Members.Overlap = 1
	s.Trust.VerificationPercent = 0
	if said.Optimizer.Codec == "" {
		s.Optimizer = optimizerFor(sliceKind())
	}
	return s
}

// Buckets tells whether results travel through buckets.
func (s Spec) Buckets() bool { return s.Exchange.Kind == ExchangeBucket }

const (
	scoreWindows = 10
	scoreAlpha   = 0.2
)

func (s *Scores) fill() {
	if s.Validators == 0 {
		return
	}
	if s.Windows == 0 {
		s.Windows = scoreWindows
	}
	if s.Alpha == 0 {
		s.Alpha = scoreAlpha
	}
}

// checkScores reports the faults of the sections above that the coordinator does not see.
func (s Spec) checkScores(fault func(format string, args ...any)) {
	switch s.Exchange.Kind {
	case ExchangePeers, ExchangeBucket:
	default:
		fault("exchange.kind: %q is not known; there are %q and %q", s.Exchange.Kind, ExchangePeers, ExchangeBucket)
	}
	if k, _ := s.Optimizer.Kind(); k.Sliceable && !s.Buckets() {
		fault("optimizer.codec: %q needs exchange.kind = %q", k.Name, ExchangeBucket)
	}
	if a := s.Scores.Alpha; !(a >= 0 && a <= 1) {
		fault("scores.alpha: %v must be above 0 and at most 1", a)
	} else if a > 0 && s.Scores.Validators == 0 {
		fault("scores.alpha: nobody scores, since scores.validators is 0")
	}
}

// coordinate adds the coordinator's share of the sections above.
func (s Spec) coordinate(l *coordinator.Limits, c *coordinator.Config) {
	if s.Buckets() {
		l.Buckets, c.Exchange = true, coordinator.Buckets
	}
	c.WindowBlocks = s.Exchange.WindowBlocks
	l.Validators = s.Scores.Validators
	c.Validators, c.ScoreWindows, c.Emission = s.Scores.Validators, s.Scores.Windows, s.Scores.Emission
	c.ValidatorPercent, c.Penalty = s.Scores.ValidatorPercent, s.Scores.PenaltyPercent
	c.RegisterCost, c.Slots, c.ImmuneWindows = s.Members.RegisterCost, s.Members.Slots, s.Members.ImmuneWindows
}
