package spec

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host/clock"
)

// Exchange defines how results travel.
type Exchange struct {
	// Kind is "peers" (gossip, and blobs from peer to peer) or "bucket" (each member's own S3
	// bucket, with commitments on the chain). "bucket" changes defaults elsewhere: overlap 1,
	// verification_percent 2, and codec "slice" with decay 1.
	Kind string `toml:"kind"`
	// WindowBlocks is the length of a window in blocks of the chain, in runs that exchange by
	// buckets. A round trains for exactly one window. The default is 60. In such runs
	// times.round_train is only an estimate of a window's duration, which members use to plan; with a
	// clock, it is 12 seconds for each block by default.
	WindowBlocks uint32 `toml:"window_blocks,omitempty"`
	// Clock is whose blocks a window counts. Empty: the chain's own. "bittensor": Bittensor's, of
	// 12 seconds; its hashes then enter the rounds' seeds. The chain must be one of entrain's whose
	// replicas follow Bittensor.
	Clock string `toml:"clock,omitempty"`
	// Aggregate is what members download of a round's results between peers. "none": every payload.
	// "followers": a member that was not elected to attest the results downloads the update that they
	// make, if that is less: a bit a parameter with codec distro, a byte with sparseloco. "slices":
	// every member downloads one range of all payloads, sums that slice of the update, and downloads
	// the others; no member downloads all payloads. Both take codec distro, or sparseloco with
	// clip_chunks, and "slices" members.overlap 1. If the key is left out it means none; `entrain run
	// create` sets none or followers, whichever is less.
	Aggregate string `toml:"aggregate,omitempty"`
	// Aggregators is the least number of members that sum each slice. With fewer, members download
	// less, and colluding members are likelier to invent a slice or to hold it up. 0: 128.
	Aggregators uint16 `toml:"aggregators,omitempty"`
}

// Scores defines who scores the members' work, and what the work earns. Tokens are whole.
type Scores struct {
	Validators uint16 `toml:"validators,omitempty"` // seats of validators; 0: no scoring
	Windows    uint32 `toml:"windows,omitempty"`    // rounds in a scoring period; 0: 10
	// Emission is the number of tokens that each period pays from the treasury to members that
	// scored well and to the validators that scored them.
	Emission         uint64 `toml:"emission,omitempty"`
	ValidatorPercent uint8  `toml:"validator_percent,omitempty"` // validators' part of the emission
	// PenaltyPercent is what a score of 0 or less costs, deducted from rewards that have not
	// vested, as a percentage of emission / slots.
	PenaltyPercent uint8 `toml:"penalty_percent,omitempty"`
	// Alpha is the weight of a member's newest score in a validator's moving average, above 0 and
	// at most 1; 0: 0.2.
	Alpha float64 `toml:"alpha,omitempty"`
}

// Values of Exchange.Kind.
const (
	ExchangePeers  = "peers"
	ExchangeBucket = "bucket"
)

// ClockBittensor is a value of Exchange.Clock.
const ClockBittensor = "bittensor"

// Values of Exchange.Aggregate.
const (
	AggregateNone      = "none"
	AggregateFollowers = "followers"
	AggregateSlices    = "slices"
)

// aggregatorsDefault is the number of aggregators of a slice of which 30 % may collude:
// docs/security.md.
const aggregatorsDefault = 128

// Followers reports whether members that do not attest results may follow those that do.
func (s Spec) Followers() bool {
	return s.Exchange.Aggregate == AggregateFollowers || s.Slices()
}

// Slices reports whether updates are made in slices.
func (s Spec) Slices() bool { return s.Exchange.Aggregate == AggregateSlices }

// Aggregators returns the least number of members that sum each slice, 0 if updates are not made in
// slices.
func (s Spec) Aggregators() uint32 {
	if !s.Slices() {
		return 0
	}
	return uint32(cmp.Or(s.Exchange.Aggregators, aggregatorsDefault))
}

// windowBlocksDefault makes a window one minute long on a chain with one block a second.
const windowBlocksDefault = 60

// bucketVerification is less than between peers, because no window waits: a miner that needs more
// than half of one for its own share misses the one in which it recomputes another's.
const bucketVerification = 2

// defaultFor returns the defaults for a specification: those of Default, adjusted to the steps,
// the codec and the exchange that it names. If the codec is not among kinds, it returns an error
// too.
func defaultFor(text []byte, kinds []codec.Kind) (Spec, error) {
	s := Default(kinds)
	var said struct {
		Steps     uint32
		Exchange  Exchange
		Optimizer struct{ Codec string }
	}
	said.Steps = s.Steps
	if toml.Unmarshal(text, &said) != nil {
		return s, nil // decode reports the syntax error when it reads the whole text
	}
	if said.Steps < s.LearningRate.Warmup {
		s.LearningRate.Warmup = said.Steps / 10
	}
	if said.Exchange.Kind == ExchangeBucket {
		s.Exchange.WindowBlocks = windowBlocksDefault
		if said.Exchange.Clock == ClockBittensor {
			blocks := min(cmp.Or(said.Exchange.WindowBlocks, windowBlocksDefault), coordinator.WindowBlocksMax)
			s.Times.RoundTrain = Duration(time.Duration(blocks) * clock.BlockMs * time.Millisecond)
		}
		s.Members.Overlap = 1
		s.Trust.VerificationPercent = bucketVerification
		sliceable := func(k codec.Kind) bool { return k.Sliceable }
		s.Optimizer = kinds[slices.IndexFunc(kinds, sliceable)].Defaults
	}
	if name := said.Optimizer.Codec; name != "" {
		k, ok := codec.Find(kinds, name)
		if !ok {
			return s, fmt.Errorf("optimizer.codec: %q is unknown; choose one of %s", name, codec.Names(kinds))
		}
		s.Optimizer = k.Defaults
	}
	return s, nil
}

// Buckets reports whether results travel through buckets.
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

// checkScores reports the faults of exchange and scores that the coordinator does not check.
func (s Spec) checkScores(fault func(format string, args ...any)) {
	switch s.Exchange.Kind {
	case ExchangePeers, ExchangeBucket:
	default:
		fault("exchange.kind: %q is unknown; choose %q or %q", s.Exchange.Kind, ExchangePeers, ExchangeBucket)
	}
	switch {
	case s.Exchange.Clock == "":
	case s.Exchange.Clock != ClockBittensor:
		fault("exchange.clock: %q is unknown; choose %q, or leave it out", s.Exchange.Clock, ClockBittensor)
	case !s.Buckets():
		fault("exchange.clock: %q needs exchange.kind = %q, whose windows count blocks", ClockBittensor, ExchangeBucket)
	}
	switch s.Exchange.Aggregate {
	case "", AggregateNone:
	case AggregateFollowers, AggregateSlices:
		switch {
		case s.Buckets() || !s.Optimizer.Kind().Followable:
			fault("exchange.aggregate: %q needs exchange.kind = %q, and optimizer.codec = %q or optimizer.sparseloco.clip_chunks above 0",
				s.Exchange.Aggregate, ExchangePeers, "distro")
		case !s.Slices():
		case s.Members.Overlap != 1:
			fault("exchange.aggregate: %q needs members.overlap = 1: ranges of payloads travel while the next round trains", AggregateSlices)
		case s.Members.Capacity < 2*s.Aggregators():
			fault("exchange.aggregators: %d members for each slice, and members.capacity of %d, make one slice; choose %q, or fewer aggregators", s.Aggregators(), s.Members.Capacity, AggregateFollowers)
		}
	default:
		fault("exchange.aggregate: %q is unknown; choose %q, %q or %q", s.Exchange.Aggregate, AggregateNone, AggregateFollowers, AggregateSlices)
	}
	if s.Exchange.Aggregators > 0 && !s.Slices() {
		fault("exchange.aggregators: has no effect unless exchange.aggregate is %q; leave it out", AggregateSlices)
	}
	if a := s.Scores.Alpha; !(a >= 0 && a <= 1) {
		fault("scores.alpha: %v must be above 0 and at most 1", a)
	} else if a > 0 && s.Scores.Validators == 0 {
		fault("scores.alpha: has no effect while scores.validators is 0; leave it out")
	}
}

// Clocked reports whether the run counts Bittensor's blocks, and not those of its chain.
func (s Spec) Clocked() bool { return s.Buckets() && s.Exchange.Clock == ClockBittensor }

// coordinate sets the coordinator's part of exchange and scores.
func (s Spec) coordinate(l *coordinator.Limits, c *coordinator.Config) {
	if s.Buckets() {
		l.Buckets, c.Exchange = true, coordinator.Buckets
	}
	c.WindowBlocks = s.Exchange.WindowBlocks
	if s.Clocked() {
		c.Clock = 1
	}
	l.Validators = s.Scores.Validators
	c.Validators, c.ScoreWindows, c.Emission = s.Scores.Validators, s.Scores.Windows, s.Scores.Emission
	c.ValidatorPercent, c.Penalty = s.Scores.ValidatorPercent, s.Scores.PenaltyPercent
	c.RegisterCost, c.Slots, c.ImmuneWindows = s.Members.RegisterCost, s.Members.Slots, s.Members.ImmuneWindows
}
