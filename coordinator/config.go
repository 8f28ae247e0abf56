package coordinator

//go:generate go run ./internal/gen

// Exchange is how the results of a run travel.
type Exchange uint8

// The ways of exchange.
const (
	Peers   Exchange = 0 // by gossip and between peers; commitments stay off the ledger
	Buckets Exchange = 1 // by members' buckets, with commitments on the ledger, in windows
)

// String returns a one-word name.
func (e Exchange) String() string {
	switch e {
	case Peers:
		return "peers"
	case Buckets:
		return "buckets"
	}
	return "unknown exchange"
}

// Sharing is how a round's batch is divided.
type Sharing uint8

// The ways of sharing.
const (
	EqualShares Sharing = 0 // equal shares; the first ones take the remainder
	SpeedShares Sharing = 1 // in proportion to the speeds stated before the epoch
)

// String returns a one-word name.
func (v Sharing) String() string {
	switch v {
	case EqualShares:
		return "equal"
	case SpeedShares:
		return "speed"
	}
	return "unknown sharing"
}

// Fault is one thing wrong with a Config.
type Fault struct {
	Key   string // the key that sets the field in a specification, or the field's name if none does
	Code  Error  // what is wrong with it
	Bound string // the key or limit it conflicts with; "" if none
}

// Error names the key and says what is wrong with it.
func (f Fault) Error() string {
	text := f.Key + ": " + f.Code.Error()
	switch {
	case f.Bound == "":
		return text
	case f.Code == ErrTooSmall:
		return f.Key + ": must be at least " + f.Bound
	case f.Code == ErrTooLarge:
		return f.Key + ": must be at most " + f.Bound
	}
	return text + " (" + f.Bound + ")"
}

// Check returns every fault of c under the limits l, faults of single fields first. It returns none
// if c is valid.
func (c Config) Check(l Limits) []Fault {
	var f faults
	f.ranges(c)
	f.when(!nameOK(c.Name), "name", ErrName, "")
	f.when(c.StartMembers < c.MinMembers, "members.start", ErrTooSmall, "members.min")
	f.when(c.StartMembers > l.Members, "members.start", ErrTooLarge, "members.capacity")
	f.when(c.Witnesses > l.Witnesses, "members.witnesses", ErrTooLarge, "members.witnesses, or 32")
	f.when(c.EpochMs != 0 && c.EpochMs < c.RoundTrainMs, "times.epoch", ErrTooSmall, "times.round_train")
	f.when(c.BatchEnd < c.BatchStart, "batch.end", ErrTooSmall, "batch.start")
	f.when(c.Numerics > 1, "numerics", ErrUnsupported, "")
	f.trust(c)
	f.exchange(c, l)
	f.when((c.Sharing == SpeedShares) != l.Speeds, "batch.shares", ErrUnsupported, "Limits.Speeds")
	f.scores(c, l)
	return f.list
}

type faults struct{ list []Fault }

func (f *faults) when(bad bool, key string, code Error, bound string) {
	if bad {
		f.list = append(f.list, Fault{Key: key, Code: code, Bound: bound})
	}
}

func (f *faults) duration(key string, ms uint64) {
	f.when(ms == 0, key, ErrZero, "")
	f.when(ms > DurationMsMax, key, ErrTooLarge, "366 days")
}

// trust checks the fields about verification and tokens.
func (f *faults) trust(c Config) {
	if c.VerificationPercent > 0 {
		f.duration("trust.verify", c.VerifyMs)
		f.duration("trust.dispute", c.DisputeMs)
		f.when(c.Stake > 0 && c.UnbondMs < c.VerifyMs, "trust.unbond", ErrTooSmall, "trust.verify")
		f.when(c.StateHash.IsZero(), "StateHash", ErrZero, "")
	} else {
		f.when(c.VerifyMs > 0, "trust.verify", ErrTooLarge, "0, as trust.verification_percent is")
		f.when(c.DisputeMs > 0, "trust.dispute", ErrTooLarge, "0, as trust.verification_percent is")
	}
}

// exchange checks the fields about windows.
func (f *faults) exchange(c Config, l Limits) {
	if c.Exchange != Buckets {
		f.when(l.Buckets, "exchange.kind", ErrUnsupported, "Limits.Buckets")
		f.when(c.WindowBlocks > 0, "exchange.window_blocks", ErrTooLarge, "0, as exchange.kind is peers")
		f.when(c.Clock > 0, "exchange.clock", ErrTooLarge, "0, as exchange.kind is peers")
		return
	}
	f.when(!l.Buckets, "exchange.kind", ErrUnsupported, "Limits.Buckets")
	f.when(c.WindowBlocks == 0, "exchange.window_blocks", ErrZero, "")
	f.when(c.WindowBlocks > WindowBlocksMax, "exchange.window_blocks", ErrTooLarge, "2^24")
	f.when(c.Overlap != 1, "members.overlap", ErrTooSmall, "1, as exchange.kind is bucket")
}

// scores checks the fields about validators, what they distribute, and slots.
func (f *faults) scores(c Config, l Limits) {
	f.when(c.Validators > l.Validators, "scores.validators", ErrTooLarge, "scores.validators")
	if c.Validators == 0 {
		f.when(c.ScoreWindows > 0, "scores.windows", ErrTooLarge, "0, as scores.validators is")
		f.when(c.Emission > 0, "scores.emission", ErrTooLarge, "0, as scores.validators is")
		f.when(c.ValidatorPercent > 0, "scores.validator_percent", ErrTooLarge, "0, as scores.validators is")
		f.when(c.Penalty > 0, "scores.penalty_percent", ErrTooLarge, "0, as scores.validators is")
		f.when(c.ImmuneWindows > 0, "members.immune_windows", ErrTooLarge, "0, as scores.validators is")
	} else {
		f.when(c.ScoreWindows < 2, "scores.windows", ErrTooSmall, "2")
	}
	f.when(c.Slots > l.Members, "members.slots", ErrTooLarge, "members.capacity")
	f.when(c.Slots > 0 && c.Slots < c.StartMembers, "members.slots", ErrTooSmall, "members.start")
}

// nameOK reports whether name is a valid name for a run. A name is also a file name and part of
// addresses, hence the narrow alphabet.
func nameOK(name string) bool {
	if len(name) == 0 || len(name) > NameBytesMax {
		return false
	}
	for i := range len(name) {
		b := name[i]
		word := 'a' <= b && b <= 'z' || '0' <= b && b <= '9'
		if !word && (i == 0 || b != '-' && b != '_' && b != '.') {
			return false
		}
	}
	return true
}
