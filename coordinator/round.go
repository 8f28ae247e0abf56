package coordinator

import (
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// Round is a view of one round in the ring. It is valid until the state changes. Members are named
// by their place in the table of members. A member that is not in the round is in none of its sets.
type RoundState struct {
	s State
	b record.Slot
}

// At returns the round with this number if the ring still holds it. The ring holds the current
// round and up to three before it.
func (s State) At(number Round) (RoundState, bool) {
	r := s.slot(number)
	return r, number != 0 && r.Number() == number
}

// slot returns the slot for the round with this number.
func (s State) slot(number Round) RoundState {
	return RoundState{s: s, b: s.buffer().RoundSlot(number)}
}

func (r RoundState) bytes(at, n uint32) []byte { return r.b[at : at+n] }

func (r RoundState) active() []byte   { return r.bytes(r.s.l.Active, r.s.l.Bitmap) }
func (r RoundState) expected() []byte { return r.bytes(r.s.l.Expected, r.s.l.Bitmap) }
func (r RoundState) accepted() []byte { return r.bytes(r.s.l.Accepted, r.s.l.Bitmap) }
func (r RoundState) counts() []byte   { return r.bytes(r.s.l.Counts, r.s.l.Members) }

// Number returns the round's number. Rounds are numbered from 1 over the whole run.
func (r RoundState) Number() Round { return r.b.Number() }

// Epoch returns the number of the epoch that the round belongs to.
func (r RoundState) Epoch() Epoch { return r.b.Epoch() }

// Seed returns the random value from which the round's roles are drawn.
func (r RoundState) Seed() wire.Hash { return r.b.Seed() }

// OpenedMs returns when the round opened, in the ledger's milliseconds.
func (r RoundState) OpenedMs() uint64 { return r.b.OpenedMs() }

// Step returns the round's number among the rounds that train, starting with 1. It is 0 for a drain
// round.
func (r RoundState) Step() Step { return r.b.Step() }

// Trains reports whether members train in the round. They do not in a drain round.
func (r RoundState) Trains() bool { return r.Step() != 0 }

// Batch returns the number of sequences trained in the round.
func (r RoundState) Batch() uint32 { return r.b.Batch() }

// Spans returns the sequences trained in the round, in the order in which they are divided into
// shares.
func (r RoundState) Spans() []batch.Span {
	spans := make([]batch.Span, min(r.b.SpansLen(), record.SpansMax))
	for i := range spans {
		spans[i] = span(r.b.Span(uint32(i)))
	}
	return spans
}

// Active reports whether member i takes part in the round.
func (r RoundState) Active(i Member) bool { return bit(r.active(), i) }

// ActiveCount returns how many members take part in the round.
func (r RoundState) ActiveCount() uint32 { return r.b.ActiveLen() }

// Expected reports whether member i has a share in the round's batch. Some members have none if the
// batch is smaller than the number of members.
func (r RoundState) Expected(i Member) bool { return bit(r.expected(), i) }

// ExpectedCount returns how many members have a share in the round's batch.
func (r RoundState) ExpectedCount() uint32 { return r.b.ExpectedLen() }

// Position returns member i's rank among the round's trainers, which determines the size of its
// share: the place of its number among the active members in the line of trainers. It is false if
// the member is not active in the round.
func (r RoundState) Position(i Member) (uint32, bool) {
	if !r.Active(i) {
		return 0, false
	}
	active := r.active()
	rank := record.Ones(active[:i>>3]) + uint32(bits.OnesCount8(active[i>>3]&(1<<(i&7)-1)))
	line := committee.Line(r.Seed(), committee.Trainers, r.ActiveCount(), r.ActiveCount())
	return uint32(slices.Index(line, rank)), true
}

// Final reports whether it is settled which of the round's results are accepted. Drain rounds have
// no results and are final.
func (r RoundState) Final() bool { return r.b.Final() }

// Accepted reports whether member i's result of the round is accepted. It is false until the round
// is Final.
func (r RoundState) Accepted(i Member) bool { return bit(r.accepted(), i) }

// AcceptedCount returns how many results of the round are accepted.
func (r RoundState) AcceptedCount() uint32 { return r.b.AcceptedLen() }

// Holders returns the number of witnesses that have reported holding member i's result of the
// round.
func (r RoundState) Holders(i Member) uint32 {
	if i >= Member(r.s.l.Members) {
		return 0
	}
	return uint32(r.counts()[i])
}

// Agreed returns the hash of the parameters at the round's start, if a quorum of its witnesses
// named them, and a quorum of the next round's witnesses after that.
func (r RoundState) Agreed() (wire.Hash, bool) {
	if !r.b.Agreed() {
		return wire.Hash{}, false
	}
	return r.b.Named(), true
}

// Attests returns the number of the round whose results this round's witnesses report, Overlap
// rounds earlier. It is 0 if there is none.
func (r RoundState) Attests() Round { return r.b.Attests() }

// Filter returns the dimensions of the filters in the round's reports. If the round attests none,
// Bits is 0 and the filters are empty.
func (r RoundState) Filter() bloom.Params {
	return bloom.Params{Bits: r.b.FilterBits(), Hashes: r.b.FilterHashes()}
}

// Quorum returns the number of the round's elected witnesses that must agree, whether or not all
// report.
func (r RoundState) Quorum() uint32 { return committee.Quorum(r.electedLen()) }

func (r RoundState) electedLen() uint32 { return uint32(r.b.ElectedLen()) }

// Witnesses returns the members elected to report in the round, by seat.
func (r RoundState) Witnesses() []Member {
	list := make([]Member, r.electedLen())
	for p := range list {
		list[p] = r.electedAt(uint32(p))
	}
	return list
}

// electedAt returns the member in seat p.
func (r RoundState) electedAt(p uint32) Member { return r.s.l.Elect(r.b, p).Member() }

// Elected reports whether member i is elected to report in the round.
func (r RoundState) Elected(i Member) bool {
	_, ok := r.seat(i)
	return ok
}

// seat returns the seat of member i among the round's witnesses.
func (r RoundState) seat(i Member) (uint32, bool) {
	for p := range r.electedLen() {
		if r.electedAt(p) == i {
			return p, true
		}
	}
	return 0, false
}

// Report is a view of one witness's report in a round.
type Report struct {
	Member      Member
	Complete    bool         // the witness holds the result of every active member
	Params      wire.Hash    // its parameters at the round's start
	Prev        wire.Hash    // its parameters at the start of the round before
	Commitments bloom.Filter // the commitments it holds, sized by RoundState.Filter; may be empty
}

// Reports returns the reports of the round received so far, in the order of the seats.
func (r RoundState) Reports() []Report {
	list := make([]Report, 0, r.b.Reports())
	for p := range r.electedLen() {
		if r.reported(p) {
			list = append(list, r.report(p))
		}
	}
	return list
}

// Reported reports whether member i has reported in the round.
func (r RoundState) Reported(i Member) bool {
	p, ok := r.seat(i)
	return ok && r.reported(p)
}

func (r RoundState) reported(p uint32) bool { return r.reportAt(p).Reported() }

func (r RoundState) report(p uint32) Report {
	b := r.reportAt(p)
	return Report{
		Member:      r.electedAt(p),
		Complete:    b.Complete(),
		Params:      b.Params(),
		Prev:        b.Prev(),
		Commitments: bloom.Filter(r.filter(p)),
	}
}

func (r RoundState) reportAt(p uint32) record.Report { return r.s.l.Report(r.b, p) }

// filter returns the bytes of the filter of seat p.
func (r RoundState) filter(p uint32) []byte { return r.s.l.Filter(r.b, p) }

// bit reports whether bit i of a bitmap is set. Bits beyond its end are not.
func bit(bitmap []byte, i Member) bool {
	return uint64(i>>3) < uint64(len(bitmap)) && bitmap[i>>3]>>(i&7)&1 == 1
}

func setBit(bitmap []byte, i Member) { bitmap[i>>3] |= 1 << (i & 7) }
