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
	Field string // name of the field, as in Config
	Code  Error  // what is wrong with it
	Bound string // the field or limit it conflicts with; "" if none
}

// Error names the field and says what is wrong with it.
func (f Fault) Error() string {
	text := f.Field + " " + f.Code.Error()
	if f.Bound != "" {
		text += " (" + f.Bound + ")"
	}
	return text
}

// Check returns every fault of c under the limits l, faults of single fields first. It returns none
// if c is valid.
func (c Config) Check(l Limits) []Fault {
	var f faults
	f.ranges(c)
	f.when(!nameOK(c.Name), "Name", ErrName, "")
	f.when(c.StartMembers < c.MinMembers, "StartMembers", ErrTooSmall, "MinMembers")
	f.when(c.StartMembers > l.Members, "StartMembers", ErrTooLarge, "Limits.Members")
	f.when(c.Witnesses > l.Witnesses, "Witnesses", ErrTooLarge, "Limits.Witnesses")
	f.when(c.EpochMs != 0 && c.EpochMs < c.RoundTrainMs, "EpochMs", ErrTooSmall, "RoundTrainMs")
	f.when(c.BatchEnd < c.BatchStart, "BatchEnd", ErrTooSmall, "BatchStart")
	f.when(c.Numerics > 1, "Numerics", ErrUnsupported, "")
	f.trust(c)
	f.exchange(c, l)
	f.when((c.Sharing == SpeedShares) != l.Speeds, "Sharing", ErrUnsupported, "Limits.Speeds")
	f.scores(c, l)
	return f.list
}

type faults struct{ list []Fault }

func (f *faults) when(bad bool, field string, code Error, bound string) {
	if bad {
		f.list = append(f.list, Fault{Field: field, Code: code, Bound: bound})
	}
}

func (f *faults) duration(field string, ms uint64) {
	f.when(ms == 0, field, ErrZero, "")
	f.when(ms > DurationMsMax, field, ErrTooLarge, "366 days")
}

// trust checks the fields about verification and tokens.
func (f *faults) trust(c Config) {
	if c.VerificationPercent > 0 {
		f.duration("VerifyMs", c.VerifyMs)
		f.duration("DisputeMs", c.DisputeMs)
		f.when(c.Stake > 0 && c.UnbondMs < c.VerifyMs, "UnbondMs", ErrTooSmall, "VerifyMs")
		f.when(c.StateHash.IsZero(), "StateHash", ErrZero, "")
	} else {
		f.when(c.VerifyMs > 0, "VerifyMs", ErrTooLarge, "0, as VerificationPercent is")
		f.when(c.DisputeMs > 0, "DisputeMs", ErrTooLarge, "0, as VerificationPercent is")
	}
}

// exchange checks the fields about windows.
func (f *faults) exchange(c Config, l Limits) {
	if c.Exchange != Buckets {
		f.when(l.Buckets, "Exchange", ErrUnsupported, "Limits.Buckets")
		f.when(c.WindowBlocks > 0, "WindowBlocks", ErrTooLarge, "0, as Exchange is peers")
		return
	}
	f.when(!l.Buckets, "Exchange", ErrUnsupported, "Limits.Buckets")
	f.when(c.WindowBlocks == 0, "WindowBlocks", ErrZero, "")
	f.when(c.WindowBlocks > WindowBlocksMax, "WindowBlocks", ErrTooLarge, "2^24")
	f.when(c.Overlap != 1, "Overlap", ErrTooSmall, "1, as Exchange is buckets")
	f.when(c.VerificationPercent > 0, "VerificationPercent", ErrTooLarge, "0, as Exchange is buckets")
}

// scores checks the fields about validators, what they distribute, and slots.
func (f *faults) scores(c Config, l Limits) {
	f.when(c.Validators > l.Validators, "Validators", ErrTooLarge, "Limits.Validators")
	if c.Validators == 0 {
		f.when(c.ScoreWindows > 0, "ScoreWindows", ErrTooLarge, "0, as Validators is")
		f.when(c.Emission > 0, "Emission", ErrTooLarge, "0, as Validators is")
		f.when(c.ValidatorPercent > 0, "ValidatorPercent", ErrTooLarge, "0, as Validators is")
		f.when(c.Penalty > 0, "Penalty", ErrTooLarge, "0, as Validators is")
		f.when(c.ImmuneWindows > 0, "ImmuneWindows", ErrTooLarge, "0, as Validators is")
	} else {
		f.when(c.ScoreWindows < 2, "ScoreWindows", ErrTooSmall, "2")
	}
	f.when(c.Slots > l.Members, "Slots", ErrTooLarge, "Limits.Members")
	f.when(c.Slots > 0 && c.Slots < c.StartMembers, "Slots", ErrTooSmall, "StartMembers")
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
