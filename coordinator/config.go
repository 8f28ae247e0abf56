package coordinator

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Config is what a run's owner decides when it is created. Durations are in milliseconds of the ledger's time.
type Config struct {
	Name string // 1 to NameBytesMax of a-z, 0-9, '-', '_' and '.', a letter or digit first

	MinMembers   uint32 // fewer active members drain the epoch
	StartMembers uint32 // as many must be present before a warmup begins; at least MinMembers
	Witnesses    uint16 // seats of witnesses in a round; 0 = as many as the limits have

	WaitingMs      uint64 // least time in WaitingForMembers, so that more than StartMembers can come; may be 0
	WarmupMs       uint64 // longest Warmup: time to fetch and check the model
	RoundTrainMs   uint64 // longest RoundTrain
	RoundWitnessMs uint64 // longest RoundWitness
	CooldownMs     uint64 // longest Cooldown: time to write a checkpoint
	EpochMs        uint64 // an epoch drains once so much time has passed since its first round opened; at least RoundTrainMs

	TotalSteps      uint32 // the run is finished after so many rounds of training
	BatchStart      uint32 // sequences in the first round's batch
	BatchEnd        uint32 // sequences in a batch at the ramp's end; at least BatchStart
	BatchRampTokens uint64 // length of the linear ramp between the two, in tokens scheduled; 0 = BatchEnd from the start
	SequenceTokens  uint32 // tokens in a sequence

	Overlap             uint8 // rounds between training and attesting: 0 or 1
	MissedMax           uint8 // a member is dropped when it misses more than so many times in a row
	VerificationPercent uint8 // expected share of a round's accepted results that are recomputed, 0 to 100
	Numerics            uint8 // numerics class; 0 = exact, the only one in this version

	VerifyMs  uint64 // longest time from the draw of a check to its verdict, and for tie-breakers; 0 if nothing is verified
	DisputeMs uint64 // longest time for one move of a dispute; 0 if nothing is verified
	Stake     uint64 // least stake of a member, in tokens; may be 0
	UnbondMs  uint64 // a stake is free so long after its member left; at least VerifyMs if there are both
	Rate      uint64 // tokens the treasury pays a point; may be 0

	Exchange     Exchange // how results travel: Peers or Buckets
	WindowBlocks uint32   // with Buckets: RoundTrain lasts exactly so many blocks of the ledger; else 0
	Sharing      Sharing  // how large a member's share of a batch is: EqualShares or SpeedShares

	Validators       uint16 // seats of validators; 0 = nobody scores
	ScoreWindows     uint32 // rounds in a period of scores, at least 2; 0 if nobody scores
	Emission         uint64 // tokens a period from the treasury for those who scored well and who scored them, less if it holds less
	ValidatorPercent uint8  // of the emission, for validators
	Penalty          uint8  // what a score of 0 or less costs of the reward that is not ripe, as a percentage of Emission/Slots

	RegisterCost  uint64 // tokens a newcomer pays to the treasury; may be 0
	Slots         uint32 // members at a time; 0 = as many as the limits have
	ImmuneWindows uint32 // a newcomer cannot be replaced for so many rounds

	ModelHash wire.Hash  // merkle.BlobRoot of the initial parameters
	StateHash wire.Hash  // merkle.BlobRoot of a fresh optimizer state; may be zero if nothing is verified
	SpecHash  wire.Hash  // hash of the run's specification, which the host keeps
	Owner     key.Public // who may pause and resume
}

// Exchange is how the results of a run travel.
type Exchange uint8

// The ways of exchange.
const (
	Peers   Exchange = 0 // by gossip and between peers; commitments never touch the ledger
	Buckets Exchange = 1 // through each member's own bucket; commitments are on the ledger, and rounds are windows of its height
)

// String returns the way in a word.
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
	EqualShares Sharing = 0 // everybody has as much, but for the remainder
	SpeedShares Sharing = 1 // in proportion to the speeds that members have said when the epoch begins
)

// String returns the way in a word.
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

// Error says which field is wrong, and how.
func (f Fault) Error() string {
	text := f.Field + " " + f.Code.Error()
	if f.Bound != "" {
		text += " (" + f.Bound + ")"
	}
	return text
}

// Check returns every fault of c under the limits l, in the order of the fields; none if c is good.
func (c Config) Check(l Limits) []Fault {
	var f faults
	f.when(!nameOK(c.Name), "Name", ErrName, "")
	f.when(c.MinMembers == 0, "MinMembers", ErrZero, "")
	f.when(c.StartMembers < c.MinMembers, "StartMembers", ErrTooSmall, "MinMembers")
	f.when(c.StartMembers > l.Members, "StartMembers", ErrTooLarge, "Limits.Members")
	f.when(c.Witnesses > l.Witnesses, "Witnesses", ErrTooLarge, "Limits.Witnesses")
	f.when(c.WaitingMs > DurationMsMax, "WaitingMs", ErrTooLarge, "366 days")
	f.duration("WarmupMs", c.WarmupMs)
	f.duration("RoundTrainMs", c.RoundTrainMs)
	f.duration("RoundWitnessMs", c.RoundWitnessMs)
	f.duration("CooldownMs", c.CooldownMs)
	f.duration("EpochMs", c.EpochMs)
	f.when(c.EpochMs != 0 && c.EpochMs < c.RoundTrainMs, "EpochMs", ErrTooSmall, "RoundTrainMs")
	f.when(c.TotalSteps == 0, "TotalSteps", ErrZero, "")
	f.when(c.TotalSteps > countMax, "TotalSteps", ErrTooLarge, "2^31")
	f.when(c.BatchStart == 0, "BatchStart", ErrZero, "")
	f.when(c.BatchEnd < c.BatchStart, "BatchEnd", ErrTooSmall, "BatchStart")
	f.when(c.BatchEnd > BatchMax, "BatchEnd", ErrTooLarge, "2^24")
	f.when(c.BatchRampTokens > RampTokensMax, "BatchRampTokens", ErrTooLarge, "2^60")
	f.when(c.SequenceTokens == 0, "SequenceTokens", ErrZero, "")
	f.when(c.SequenceTokens > SequenceTokensMax, "SequenceTokens", ErrTooLarge, "2^20")
	f.when(c.Overlap > 1, "Overlap", ErrTooLarge, "1")
	f.when(c.VerificationPercent > 100, "VerificationPercent", ErrTooLarge, "100")
	f.when(c.Numerics != 0, "Numerics", ErrUnsupported, "")
	f.trust(c)
	f.exchange(c, l)
	f.when(c.Sharing > SpeedShares, "Sharing", ErrTooLarge, "1")
	f.when((c.Sharing == SpeedShares) != l.Speeds, "Sharing", ErrUnsupported, "Limits.Speeds")
	f.scores(c, l)
	f.when(c.ModelHash.IsZero(), "ModelHash", ErrZero, "")
	f.when(c.SpecHash.IsZero(), "SpecHash", ErrZero, "")
	f.when(c.Owner.IsZero(), "Owner", ErrZero, "")
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
	f.when(c.UnbondMs > DurationMsMax, "UnbondMs", ErrTooLarge, "366 days")
	f.when(c.Stake > TokensMax, "Stake", ErrTooLarge, "2^62")
	f.when(c.Rate > TokensMax, "Rate", ErrTooLarge, "2^62")
}

// exchange checks the fields about windows.
func (f *faults) exchange(c Config, l Limits) {
	f.when(c.Exchange > Buckets, "Exchange", ErrTooLarge, "1")
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
	f.when(c.ScoreWindows > ScoreWindowsMax, "ScoreWindows", ErrTooLarge, "2^16")
	f.when(c.Emission > TokensMax, "Emission", ErrTooLarge, "2^62")
	f.when(c.ValidatorPercent > 100, "ValidatorPercent", ErrTooLarge, "100")
	f.when(c.Penalty > 100, "Penalty", ErrTooLarge, "100")
	f.when(c.RegisterCost > TokensMax, "RegisterCost", ErrTooLarge, "2^62")
	f.when(c.Slots > l.Members, "Slots", ErrTooLarge, "Limits.Members")
	f.when(c.Slots > 0 && c.Slots < c.StartMembers, "Slots", ErrTooSmall, "StartMembers")
	f.when(c.ImmuneWindows > countMax, "ImmuneWindows", ErrTooLarge, "2^31")
}

// nameOK tells whether a run may be called so. A name is a file name and part of addresses, hence the narrow alphabet.
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

// sharingBit is where a byte that holds an Exchange has the Sharing: in its upper half.
const sharingBit = 4

// Append appends the canonical encoding of c: the name with its length, then the fields in their order, but Sharing in the upper
// half of the byte of Exchange.
func (c Config) Append(dst []byte) []byte {
	dst = wire.AppendString(dst, c.Name)
	dst = wire.AppendU32(dst, c.MinMembers)
	dst = wire.AppendU32(dst, c.StartMembers)
	dst = wire.AppendU16(dst, c.Witnesses)
	dst = wire.AppendU64(dst, c.WaitingMs)
	dst = wire.AppendU64(dst, c.WarmupMs)
	dst = wire.AppendU64(dst, c.RoundTrainMs)
	dst = wire.AppendU64(dst, c.RoundWitnessMs)
	dst = wire.AppendU64(dst, c.CooldownMs)
	dst = wire.AppendU64(dst, c.EpochMs)
	dst = wire.AppendU32(dst, c.TotalSteps)
	dst = wire.AppendU32(dst, c.BatchStart)
	dst = wire.AppendU32(dst, c.BatchEnd)
	dst = wire.AppendU64(dst, c.BatchRampTokens)
	dst = wire.AppendU32(dst, c.SequenceTokens)
	dst = wire.AppendU8(dst, c.Overlap)
	dst = wire.AppendU8(dst, c.MissedMax)
	dst = wire.AppendU8(dst, c.VerificationPercent)
	dst = wire.AppendU8(dst, c.Numerics)
	dst = wire.AppendU64(dst, c.VerifyMs)
	dst = wire.AppendU64(dst, c.DisputeMs)
	dst = wire.AppendU64(dst, c.Stake)
	dst = wire.AppendU64(dst, c.UnbondMs)
	dst = wire.AppendU64(dst, c.Rate)
	dst = wire.AppendU8(dst, uint8(c.Exchange)|uint8(c.Sharing)<<sharingBit)
	dst = wire.AppendU32(dst, c.WindowBlocks)
	dst = wire.AppendU16(dst, c.Validators)
	dst = wire.AppendU32(dst, c.ScoreWindows)
	dst = wire.AppendU64(dst, c.Emission)
	dst = wire.AppendU8(dst, c.ValidatorPercent)
	dst = wire.AppendU8(dst, c.Penalty)
	dst = wire.AppendU64(dst, c.RegisterCost)
	dst = wire.AppendU32(dst, c.Slots)
	dst = wire.AppendU32(dst, c.ImmuneWindows)
	dst = wire.AppendHash(dst, c.ModelHash)
	dst = wire.AppendHash(dst, c.StateHash)
	dst = wire.AppendHash(dst, c.SpecHash)
	return append(dst, c.Owner[:]...)
}

// ReadConfig takes a configuration off a reader. It checks the encoding only; Check judges the values.
func ReadConfig(r *wire.Reader) Config {
	c := Config{
		Name:       r.String(NameBytesMax),
		MinMembers: r.U32(), StartMembers: r.U32(), Witnesses: r.U16(),
		WaitingMs: r.U64(), WarmupMs: r.U64(), RoundTrainMs: r.U64(), RoundWitnessMs: r.U64(), CooldownMs: r.U64(), EpochMs: r.U64(),
		TotalSteps: r.U32(), BatchStart: r.U32(), BatchEnd: r.U32(), BatchRampTokens: r.U64(), SequenceTokens: r.U32(),
		Overlap: r.U8(), MissedMax: r.U8(), VerificationPercent: r.U8(), Numerics: r.U8(),
		VerifyMs: r.U64(), DisputeMs: r.U64(), Stake: r.U64(), UnbondMs: r.U64(), Rate: r.U64(),
		Exchange: Exchange(r.U8()), WindowBlocks: r.U32(), Validators: r.U16(), ScoreWindows: r.U32(), Emission: r.U64(),
		ValidatorPercent: r.U8(), Penalty: r.U8(), RegisterCost: r.U64(), Slots: r.U32(), ImmuneWindows: r.U32(),
		ModelHash: r.Hash(), StateHash: r.Hash(), SpecHash: r.Hash(), Owner: key.Public(r.Hash()),
	}
	c.Exchange, c.Sharing = c.Exchange&(1<<sharingBit-1), Sharing(c.Exchange>>sharingBit)
	return c
}
