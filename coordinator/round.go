package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"math/bits"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/wire"
)

// Round is a view of one round in the ring. It is valid until the state is changed. Members are named by their place in the
// table of members throughout; a member that is not of the round is simply not in any of its sets.
type Round struct {
	s State
	b record.Slot
}

// At returns the round of that number, if the ring still holds it: the current round and up to three before.
func (s State) At(number uint32) (Round, bool) {
	r := s.slot(number)
	return r, number != 0 && r.Number() == number
}

// slot returns the slot that a round of that number has.
func (s State) slot(number uint32) Round {
	return Round{s: s, b: s.buffer().RoundSlot(number)}
}

func (r Round) bytes(at, n uint32) []byte { return r.b[at : at+n] }

func (r Round) active() []byte   { return r.bytes(r.s.l.Active, r.s.l.Bitmap) }
func (r Round) expected() []byte { return r.bytes(r.s.l.Expected, r.s.l.Bitmap) }
func (r Round) accepted() []byte { return r.bytes(r.s.l.Accepted, r.s.l.Bitmap) }
func (r Round) counts() []byte   { return r.bytes(r.s.l.Counts, r.s.l.Members) }

// Number returns the round's number; rounds count across the run, the first is 1.
func (r Round) Number() uint32 { return r.b.Number() }

// Epoch returns the epoch the round belongs to.
func (r Round) Epoch() uint32 { return r.b.Epoch() }

// Seed returns the chance of which the round's roles are made.
func (r Round) Seed() wire.Hash { return r.b.Seed() }

// OpenedMs returns when the round opened, in the ledger's milliseconds.
func (r Round) OpenedMs() uint64 { return r.b.OpenedMs() }

// Step returns which of the rounds with training it is, the first being 1; 0 for a drain round.
func (r Round) Step() uint32 { return r.b.Step() }

// Trains tells whether members train in the round; they do not in a drain round.
func (r Round) Trains() bool { return r.Step() != 0 }

// Batch returns the number of sequences trained in the round.
func (r Round) Batch() uint32 { return r.b.Batch() }

// Spans returns the sequences trained in the round, in the order in which shares are cut from them.
func (r Round) Spans() []batch.Span {
	spans := make([]batch.Span, min(r.b.SpansLen(), record.SpansMax))
	for i := range spans {
		spans[i] = span(r.b.Span(uint32(i)))
	}
	return spans
}

// Active tells whether member i takes part in the round.
func (r Round) Active(i uint32) bool { return bit(r.active(), i) }

// ActiveCount returns how many members take part in the round.
func (r Round) ActiveCount() uint32 { return r.b.ActiveLen() }

// Expected tells whether member i has a share in the round's batch. When the batch is smaller than the number of members,
// some have none.
func (r Round) Expected(i uint32) bool { return bit(r.expected(), i) }

// ExpectedCount returns how many members have a share in the round's batch.
func (r Round) ExpectedCount() uint32 { return r.b.ExpectedLen() }

// Position returns the place of member i among the round's trainers, of which the size of its share depends:
// committee.Position of its rank among the active members. It is false if the member is not active in the round.
func (r Round) Position(i uint32) (uint32, bool) {
	if !r.Active(i) {
		return 0, false
	}
	active := r.active()
	rank := ones(active[:i>>3]) + uint32(bits.OnesCount8(active[i>>3]&(1<<(i&7)-1)))
	return committee.Position(r.Seed(), committee.Trainers, r.ActiveCount(), rank), true
}

// Final tells whether it is settled which of the round's results are accepted. Drain rounds have none, and are final.
func (r Round) Final() bool { return r.b.Final() }

// Accepted tells whether member i's result of the round is accepted. It is false until the round is Final.
func (r Round) Accepted(i uint32) bool { return bit(r.accepted(), i) }

// AcceptedCount returns how many results of the round are accepted.
func (r Round) AcceptedCount() uint32 { return r.b.AcceptedLen() }

// Holders returns how many witnesses so far reported to hold member i's result of the round.
func (r Round) Holders(i uint32) uint32 {
	if i >= r.s.l.Members {
		return 0
	}
	return uint32(r.counts()[i])
}

// Agreed returns the hash of the parameters at the round's start, if a quorum of its witnesses reported the same.
func (r Round) Agreed() (wire.Hash, bool) {
	return r.b.Agreed(), r.b.HasAgreed()
}

// Attests returns the number of the round whose results the round's witnesses report, Overlap rounds before it; 0 if none.
func (r Round) Attests() uint32 { return r.b.Attests() }

// Filter returns the dimensions of the filters in the round's reports. Bits is 0 when no round is attested: the filter is
// then empty.
func (r Round) Filter() bloom.Params {
	return bloom.Params{Bits: r.b.FilterBits(), Hashes: r.b.FilterHashes()}
}

// Quorum returns how many of the round's elected witnesses must agree, whether or not all report.
func (r Round) Quorum() uint32 { return committee.Quorum(r.electedLen()) }

func (r Round) electedLen() uint32 { return uint32(r.b.ElectedLen()) }

// Witnesses returns the members elected to report in the round.
func (r Round) Witnesses() []uint32 {
	list := make([]uint32, r.electedLen())
	for p := range list {
		list[p] = r.electedAt(uint32(p))
	}
	return list
}

// electedAt returns the member in seat p.
func (r Round) electedAt(p uint32) uint32 { return r.s.l.Elect(r.b, p).Member() }

// Elected tells whether member i is elected to report in the round.
func (r Round) Elected(i uint32) bool {
	_, ok := r.seat(i)
	return ok
}

// seat returns the seat of member i among the round's witnesses.
func (r Round) seat(i uint32) (uint32, bool) {
	for p := range r.electedLen() {
		if r.electedAt(p) == i {
			return p, true
		}
	}
	return 0, false
}

// Report is a view of what one witness reported in a round.
type Report struct {
	Member      uint32
	Complete    bool         // the witness holds the result of every active member
	Params      wire.Hash    // its parameters at the round's start; zero if it does not vouch for them
	Commitments bloom.Filter // which commitments it holds, of the dimensions Round.Filter; empty when no round is attested
}

// Reports returns the reports of the round that have come so far, in the order of the seats.
func (r Round) Reports() []Report {
	list := make([]Report, 0, r.b.Reports())
	for p := range r.electedLen() {
		if r.reported(p) {
			list = append(list, r.report(p))
		}
	}
	return list
}

// Reported tells whether member i has reported in the round.
func (r Round) Reported(i uint32) bool {
	p, ok := r.seat(i)
	return ok && r.reported(p)
}

func (r Round) reported(p uint32) bool { return r.reportAt(p).Reported() }

func (r Round) report(p uint32) Report {
	b := r.reportAt(p)
	return Report{
		Member:      r.electedAt(p),
		Complete:    b.Complete(),
		Params:      b.Params(),
		Commitments: bloom.Filter(r.filter(p)),
	}
}

func (r Round) reportAt(p uint32) record.Report { return r.s.l.Report(r.b, p) }

// filter returns the bytes of the filter of seat p.
func (r Round) filter(p uint32) []byte { return r.s.l.Filter(r.b, p) }

// bit reports whether bit i of a bitmap is set; bits beyond it are not.
func bit(bitmap []byte, i uint32) bool {
	return uint64(i>>3) < uint64(len(bitmap)) && bitmap[i>>3]>>(i&7)&1 == 1
}

func setBit(bitmap []byte, i uint32) { bitmap[i>>3] |= 1 << (i & 7) }
