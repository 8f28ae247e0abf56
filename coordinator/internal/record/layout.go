package record

import (
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/internal/tally"
	"github.com/entrain-network/entrain/key"
)

// PageBytes is the size of a page. The parts of the buffer begin at pages.
const PageBytes = HeaderBytes

// Capacities that no limits change.
const (
	RingRounds     = 4  // rounds kept
	SpansMax       = 8  // spans of a batch: seven from the redo queue, one fresh
	RedoMax        = 64 // spans in the redo queue
	ChecksMin      = 64 // least number of places in the table of checks
	TiesMax        = 3  // tie-breakers of a dispute
	DisputesMax    = 16 // open disputes
	ConvictionsMax = 64 // convictions kept
	TalliesKept    = 3  // of the current period, the one being scored, and the last settled
	BallotsKept    = 2  // of the period being scored, and of the last settled
)

// Layout is where the parts of a buffer lie that depend on the limits, in bytes.
type Layout struct {
	Members, Witnesses, Validators uint32
	Buckets, Speeds                bool

	Table, Redo, Ring             uint32 // offsets in the buffer
	Checks, Disputes, Convictions uint32
	Seats, Tallies, Periods       uint32
	Slot, Tally, Period           uint32 // lengths of a slot, a tally, and a period's ballots
	ChecksMax                     uint32 // places in the table of checks
	Total                         uint32 // length of the buffer

	// Offsets in a slot.
	Elected, Reports, Active, Expected, Accepted, Counts, Filters, Commits, Shares uint32

	Bitmap, FiltersLen uint32 // lengths of a bitmap and of the space for filters
}

// LayoutOf lays out a buffer. The limits have been checked.
func LayoutOf(members, witnesses, validators uint32, buckets, speeds bool) *Layout {
	a := &Layout{Members: members, Witnesses: witnesses, Validators: validators, Buckets: buckets, Speeds: speeds}
	a.Bitmap = (members + 63) / 64 * 8
	if !buckets {
		a.FiltersLen = filtersBytes(members, witnesses) // with buckets, reports have no filters
	}

	a.Elected = SlotBytes
	a.Reports = up(a.Elected+4*witnesses, 8)
	a.Active = a.Reports + ReportBytes*witnesses
	a.Expected = a.Active + a.Bitmap
	a.Accepted = a.Expected + a.Bitmap
	a.Counts = a.Accepted + a.Bitmap
	a.Filters = up(a.Counts+members, 8)
	a.Commits = up(a.Filters+a.FiltersLen, 8)
	end := a.Commits
	if buckets {
		end += 32 * members
	}
	a.Shares = end
	if speeds {
		end += ShareBytes * members
	}
	a.Slot = up(end, PageBytes)

	a.Table = HeaderBytes
	a.Redo = up(a.Table+PlaceBytes*members, PageBytes)
	a.Ring = a.Redo + up(RedoMax*SpanBytes, PageBytes)
	a.Checks = a.Ring + RingRounds*a.Slot
	a.ChecksMax = max(ChecksMin, members/4)
	a.Disputes = a.Checks + up(CheckBytes*a.ChecksMax, PageBytes)
	a.Convictions = a.Disputes + up(DisputeBytes*DisputesMax, PageBytes)
	a.Seats = a.Convictions + up(ConvictionBytes*ConvictionsMax, PageBytes)
	a.Tallies = a.Seats + up(2*SeatBytes*validators, PageBytes)
	a.Periods = a.Tallies
	if validators > 0 {
		a.Tally = up(TallyBytes+WorkBytes*members, PageBytes)
		a.Period = up(PeriodBytes+validators*(BallotBytes+2*members), PageBytes)
		a.Periods += TalliesKept * a.Tally
	}
	a.Total = a.Periods + BallotsKept*a.Period
	return a
}

// filtersBytes returns the space that the filters of one round need at most. Many witnesses have
// smaller filters each, so the most is not always that of the most witnesses.
func filtersBytes(members, witnesses uint32) uint32 {
	most := uint32(0)
	for w := uint32(1); w <= witnesses; w++ {
		p := bloom.Size(members, w, committee.Quorum(w))
		most = max(most, w*(p.Bits/8))
	}
	return most
}

// up rounds n up to a multiple of to.
func up(n, to uint32) uint32 { return (n + to - 1) / to * to }

// Zero reports whether b has no bit set.
func Zero(b []byte) bool {
	for len(b) >= 8 {
		if u64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// Buffer is a run's state: its bytes, and where their parts lie. Layout is a pointer because loops
// over members copy a Buffer for each.
type Buffer struct {
	B []byte
	*Layout
}

func (b Buffer) part(at, n uint32) []byte {
	from := uint64(at) // 64 bits cost Solana's machine least
	to := from + uint64(n)
	return b.B[from:to:to]
}

// Header returns the header.
func (b Buffer) Header() Header { return Header(b.B[:HeaderBytes]) }

// Place returns place i of the table of members, in use or not.
func (b Buffer) Place(i Member) Place {
	tally.Members(1)
	at := uint64(b.Table) + PlaceBytes*uint64(i) // as part does, whose product would be of 32 bits
	return b.B[at : at+PlaceBytes : at+PlaceBytes]
}

// Places is the table of members, for loops over all of them.
type Places []byte

// Places returns the places that are in use.
func (b Buffer) Places() Places {
	n := b.Header().Count()
	tally.Members(uint32(n))
	return Places(b.B[b.Table:][:PlaceBytes*uint64(n)])
}

// At returns place i, which is in use.
func (t Places) At(i Member) Place { return at(t, uint64(i), PlaceBytes) }

// Find returns the place of the member with this key, whatever its status.
func (b Buffer) Find(pub key.Public) (Member, bool) {
	n, table, last := uint64(b.Header().Count()), b.B[b.Table:], u64(pub[24:])
	for i := uint64(0); ; i++ { // keys with one last word are rare
		from := i
		i = find(table[24:], i, n, PlaceBytes, last)
		tally.Members(uint32(min(i+1, n) - from))
		if i == n {
			return 0, false
		}
		if key.Public(table[PlaceBytes*i:]) == pub {
			return Member(i), true
		}
	}
}

// Present returns how many members are present.
func (b Buffer) Present() uint32 {
	n := b.Header().Count()
	tally.Members(uint32(n))
	return within(b.B[b.Table+80:], uint64(n), PlaceBytes, StatusWaiting, StatusActive)
}

// Queued returns span n of the redo queue.
func (b Buffer) Queued(n uint32) Span { return b.part(b.Redo+SpanBytes*n, SpanBytes) }

// RoundSlot returns the slot for the round of that number.
func (b Buffer) RoundSlot(number Round) Slot {
	return b.part(b.Ring+uint32(number)%RingRounds*b.Slot, b.Slot)
}

// The parts of a slot: the elected witness, the report and the filter of seat p, and the commitment
// and the share of member i.

func (a *Layout) Elect(r Slot, p uint32) Elected {
	return Elected(r[a.Elected+ElectedBytes*p:][:ElectedBytes])
}
func (a *Layout) Report(r Slot, p uint32) Report {
	return Report(r[a.Reports+ReportBytes*p:][:ReportBytes])
}
func (a *Layout) Commit(r Slot, i Member) Commit {
	return Commit(r[a.Commits+CommitBytes*uint32(i):][:CommitBytes])
}
func (a *Layout) Share(r Slot, i Member) Share {
	return Share(r[a.Shares+ShareBytes*uint32(i):][:ShareBytes])
}

func (a *Layout) Filter(r Slot, p uint32) []byte {
	n := r.FilterBits() / 8
	return r[a.Filters+n*p:][:n]
}

// Check returns place k of the table of checks.
func (b Buffer) Check(k uint32) Check { return b.part(b.Checks+CheckBytes*k, CheckBytes) }

// NextCheck returns the first place from k on that is not free; ChecksMax if all are.
func (b Buffer) NextCheck(k uint32) uint32 {
	return uint32(used(b.B[b.Checks:], uint64(k), uint64(b.ChecksMax), CheckBytes))
}

// Dispute returns place k of the table of disputes.
func (b Buffer) Dispute(k uint32) Dispute { return b.part(b.Disputes+DisputeBytes*k, DisputeBytes) }

// Conviction returns the place of conviction n, which counts from 1.
func (b Buffer) Conviction(n uint32) Conviction {
	return b.part(b.Convictions+ConvictionBytes*((n-1)%ConvictionsMax), ConvictionBytes)
}

// Seat returns seat k of the table of validators.
func (b Buffer) Seat(k uint32) Seat { return b.part(b.Seats+SeatBytes*k, SeatBytes) }

// Bench returns the place of who waits for seat k, or had it before and is owed tokens.
func (b Buffer) Bench(k uint32) Seat { return b.Seat(b.Validators + k) }

// TallyOf returns the place for the tally of a period.
func (b Buffer) TallyOf(period uint32) Tally {
	return b.part(b.Tallies+period%TalliesKept*b.Tally, b.Tally)
}

// Work returns member i's part of a tally.
func (b Tally) Work(i Member) Work { return Work(b[TallyBytes+WorkBytes*uint32(i):][:WorkBytes]) }

// Mark sets the bits of those of the first n members that have accepted results.
func (b Tally) Mark(bitmap []byte, n Member) { mark(bitmap, b[TallyBytes:], uint64(n), WorkBytes) }

// Ballots returns the place for the ballots of a period.
func (b Buffer) Ballots(period uint32) Period {
	return b.part(b.Periods+period%BallotsKept*b.Period, b.Period)
}

// Ballot returns what the validator in seat k says of a period.
func (b Buffer) Ballot(period, k uint32) Ballot {
	return Ballot(b.Ballots(period)[PeriodBytes+BallotBytes*k:][:BallotBytes])
}

// Given returns the scores that the validator in seat k gives in a period: two bytes a member.
func (b Buffer) Given(period, k uint32) Given {
	return Given(b.Ballots(period)[PeriodBytes+BallotBytes*b.Validators+2*b.Members*k:][:2*b.Members])
}

// Rated is a member and its score in a message: U32, and U16 in two's complement.
type Rated []byte

// Member returns the member.
func (b Rated) Member() Member { return Member(u32(b)) }

// Score returns its score.
func (b Rated) Score() uint16 { return u16(b[4:]) }

// Put sets both.
func (b Rated) Put(i Member, score uint16) {
	putU32(b, uint32(i))
	putU16(b[4:], score)
}

// Given is the scores that one validator gives in a period, by members: the score + 32768, or 0.
type Given []byte

// Score returns the score of member i.
func (g Given) Score(i Member) uint16 { return u16(g[2*uint64(i):]) }

// SetScore sets the score of member i.
func (g Given) SetScore(i Member, v uint16) { putU16(g[2*uint64(i):], v) }

func flag(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}
