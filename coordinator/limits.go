package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// Limits is the capacity of a run's state. It is chosen when the run is created, fixes the size of
// its buffer, and never changes.
type Limits struct {
	Members   uint32 // places in the table of members, 1 to MembersMax
	Witnesses uint16 // seats of witnesses in a round, 1 to WitnessesMax
	// Validators is the number of validator seats, 0 to ValidatorsMax. 0 leaves no room for scores.
	Validators uint16
	// Buckets leaves room for the commitments of a run that exchanges results by buckets.
	Buckets bool
	// Speeds leaves room for the speeds that determine shares with SpeedShares.
	Speeds bool
}

// The optional parts of a buffer, as bits of a byte.
const (
	roomBuckets = 1
	roomSpeeds  = 2
)

func (l Limits) room() uint8 {
	room := uint8(0)
	if l.Buckets {
		room |= roomBuckets
	}
	if l.Speeds {
		room |= roomSpeeds
	}
	return room
}

func (l *Limits) setRoom(room uint8) {
	l.Buckets, l.Speeds = room&roomBuckets != 0, room&roomSpeeds != 0
}

// Bounds on input, with their reasons.
const (
	// MembersMax: a message costs O(members). At this size the state is about 4 MB, and a round's end
	// costs milliseconds.
	MembersMax   = 10000
	WitnessesMax = 32 // bloom.WitnessesMax; a round's reports are stored

	// ValidatorsMax: the scores of two periods are stored, and combining them costs O(members) for
	// each validator.
	ValidatorsMax   = 64
	ScoreWindowsMax = 1 << 16 // windows in a period; its sequences fit 32 bits for all sane batches

	NameBytesMax      = 32          // in a run's name, which is also a file name
	BatchMax          = 1 << 24     // sequences in a round; 2^31 rounds have at most 2^55
	SequenceTokensMax = 1 << 20     // tokens in a sequence
	DurationMsMax     = 31622400000 // 366 days: enough for any phase, and sums never overflow
	RampTokensMax     = 1 << 60     // far more text than there is

	TokensMax = 1 << 62 // in a run's escrow, so that sums never overflow
	// EvidenceBytesMax: two chunks of a blob with their proofs, because a sequence may span both, and
	// 128 KiB for a data manifest.
	EvidenceBytesMax = 5 << 17

	WindowBlocksMax = 1 << 24 // blocks in a window: half a year at one a second

	heldBytesMax = (MembersMax + 7) / 8 // bitmap of members in a report
	countMax     = record.CountMax      // rounds, steps, epochs: at one a second, 68 years
)

// Size returns the length in bytes of the buffer of a run with these limits, or 0 if they are out
// of range.
func Size(l Limits) int {
	if l.check() != OK {
		return 0
	}
	return int(l.layout().Total)
}

func (l Limits) layout() *record.Layout {
	return record.LayoutOf(l.Members, uint32(l.Witnesses), uint32(l.Validators), l.Buckets, l.Speeds)
}

// Check returns ErrLimits if l is outside its range.
func (l Limits) Check() error { return l.check().OrNil() }

func (l Limits) check() Error {
	if l.Members == 0 || l.Members > MembersMax || l.Witnesses == 0 || l.Witnesses > WitnessesMax || l.Validators > ValidatorsMax {
		return ErrLimits
	}
	return OK
}

// Append appends the encoding of l: U32 Members, U16 Witnesses, U16 Validators, and a U8 in which
// bit 0 is Buckets and bit 1 is Speeds.
func (l Limits) Append(dst []byte) []byte {
	dst = wire.AppendU16(wire.AppendU32(dst, l.Members), l.Witnesses)
	return wire.AppendU8(wire.AppendU16(dst, l.Validators), l.room())
}

// ReadLimits reads limits from r. Limits out of range fail with wire.ErrOutOfRange.
func ReadLimits(r *wire.Reader) Limits {
	l := Limits{Members: r.U32(), Witnesses: r.U16(), Validators: r.U16()}
	room := r.U8()
	l.setRoom(room)
	if l.check() != OK || room != l.room() {
		r.Fail(wire.ErrOutOfRange)
	}
	return l
}
