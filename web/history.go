package web

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// What a history keeps of a run. The sizes are of a run with 10,000 members.
const (
	roundsMax  = 1 << 17 // rounds in the table, 150 bytes each: 20 MB
	detailsMax = 256     // rounds of which it is known who did what, 14 kB each: 4 MB
	turnsMax   = 1 << 14 // comings and goings, 100 bytes each
)

// history is what is known of a run's past: who did what in its rounds, who came and went. The
// chain itself keeps four rounds; the rest is what the server has seen since it started, or what
// the log of a participant tells.
type history struct {
	members []runlog.Member   // by place, as of the newest state
	rounds  []roundRecord     // ascending; gaps are rounds that nobody looked at
	details []*roundDetail    // of the last ones
	turns   []turn            // oldest first
	seconds series            // a round took
	size    series            // members that took part
	begun   bool              // a state was seen
	early   map[uint32]string // commitments to round earlyOf, which has not opened here
	earlyOf uint32
	checked uint64 // points given for verifying, not for training
}

// roundRecord is a round in short.
type roundRecord struct {
	number, epoch, step uint32 // step is 0 in a drain round
	openedMs            uint64
	witnessMs           uint64 // 0 while the round is in RoundTrain, or if RoundWitness was not seen
	endMs               uint64 // 0 while the round runs
	active              uint32 // members that took part
	expected            uint32 // of them, with a share
	accepted            uint32
	batch               uint32 // sequences
	seats, reports      uint16 // of witnesses
	quorum              uint16
	final               bool
	charted             bool // it is in the curves
	agreed              bool // on params, the parameters at its start
	seed, params        wire.Hash
}

// roundDetail is who did what in a round. Members are named by their places.
type roundDetail struct {
	number    uint32
	attests   uint32
	active    runlog.Set
	expected  runlog.Set
	accepted  runlog.Set
	shares    []uint32 // sequences of those expected, in their order; nil where shares are equal
	holders   []uint8  // how many witnesses hold a member's result; nil if the round was not seen on the chain
	witnesses []witnessRecord
	former    map[uint32]string // keys of places that others have taken since
	// commitments are the IDs of those that the participant saw, by member; of small rounds only.
	commitments map[uint32]string
}

// witnessRecord is a seat of a round.
type witnessRecord struct {
	member     uint32
	reported   bool
	complete   bool
	reportedMs uint64 // the ledger's time when the report was first seen
	params     string // its parameters at the round's start, hex; "" if not known or not vouched for
}

// turn is a member's coming or going.
type turn struct {
	ms     uint64
	round  uint32
	member string // key
	what   string // joined, dropped, withdrawn, ejected
}

// observe takes a newer state, or what changed since the one before. State may be nil: it adds what
// the standing does not tell.
func (h *history) observe(s *runlog.Standing, state *coordinator.State) {
	for _, m := range s.Members {
		h.observeMember(s, m)
	}
	h.begun = true
	if s.Trust != nil {
		h.checked = s.Trust.Verified
	}
	for i := range s.Rounds {
		h.observeRound(s, &s.Rounds[i], state)
	}
	h.close(s)
}

// observeMember notes who came and went.
func (h *history) observeMember(s *runlog.Standing, m runlog.Member) {
	for uint64(len(h.members)) <= uint64(m.Index) {
		if len(h.members) > int(coordinator.MembersMax) {
			return
		}
		h.members = append(h.members, runlog.Member{Index: uint32(len(h.members))})
	}
	old := h.members[m.Index]
	if old.Key != m.Key && !old.Key.IsZero() {
		h.replaced(old)
		old = runlog.Member{}
	}
	h.members[m.Index] = m
	if !h.begun || old.Status == m.Status {
		return
	}
	t := turn{ms: s.TimeMs, round: s.Round, member: m.Key.String(), what: m.Status.String()}
	switch {
	case !m.Status.Present():
	case !old.Status.Present():
		t.what = "joined"
	default:
		return
	}
	if len(h.turns) >= turnsMax {
		h.turns = slices.Delete(h.turns, 0, turnsMax/4)
	}
	h.turns = append(h.turns, t)
}

// committedMax is how many commitments of a round are remembered: of 256 rounds that is 16 MB.
const committedMax = 1024

// committed remembers the ID of a member's commitment. Those to a round that has not opened here
// wait for it: the log is read a little earlier or later than the chain.
func (h *history) committed(round, member uint32, id string) {
	var to map[uint32]string
	switch d := h.detail(round); {
	case d != nil:
		if d.commitments == nil {
			d.commitments = map[uint32]string{}
		}
		to = d.commitments
	case len(h.rounds) > 0 && round <= h.rounds[len(h.rounds)-1].number:
		return // too old
	default:
		if h.early == nil || round > h.earlyOf {
			h.early, h.earlyOf = map[uint32]string{}, round
		}
		to = h.early
	}
	if len(to) < committedMax {
		to[member] = id
	}
}

// replaced remembers the key of a place that has gone to another.
func (h *history) replaced(old runlog.Member) {
	for _, d := range h.details {
		if _, ok := d.former[old.Index]; !ok && d.active.Has(old.Index) {
			if d.former == nil {
				d.former = map[uint32]string{}
			}
			d.former[old.Index] = old.Key.String()
		}
	}
}

// observeRound brings the record of a round up to date.
func (h *history) observeRound(s *runlog.Standing, r *runlog.Round, state *coordinator.State) {
	rec, d := h.record(r.Number)
	if rec == nil {
		return
	}
	rec.epoch, rec.step, rec.batch, rec.openedMs = r.Epoch, r.Step, r.Batch, r.OpenedMs
	rec.final, rec.accepted, rec.quorum = r.Final, r.AcceptedCount, uint16(r.Quorum)
	rec.active, rec.expected = count(r.Active), count(r.Expected)
	rec.seed, _ = wire.ParseHash(r.Seed)
	if r.Agreed != "" {
		rec.params, _ = wire.ParseHash(r.Agreed)
		rec.agreed = true
	}
	if d == nil {
		return
	}
	d.attests, d.active, d.expected, d.accepted, d.shares = r.Attests, r.Active, r.Expected, r.Accepted, r.Sequences
	if len(d.witnesses) != len(r.Witnesses) {
		d.witnesses = make([]witnessRecord, len(r.Witnesses))
	}
	rec.seats, rec.reports = uint16(len(r.Witnesses)), 0
	for i, w := range r.Witnesses {
		to := &d.witnesses[i]
		if w.Reported {
			rec.reports++
			if !to.reported {
				to.reportedMs = s.TimeMs
			}
		}
		to.member, to.reported, to.complete = w.Member, w.Reported, w.Complete
	}
	if state != nil {
		d.observeReports(*state)
	}
}

// observeReports adds what only the chain tells: how many witnesses hold what, and which parameters
// they have.
func (d *roundDetail) observeReports(s coordinator.State) {
	r, ok := s.At(d.number)
	if !ok {
		return
	}
	d.holders = make([]uint8, s.Count())
	for i := range d.holders {
		if d.expected.Has(uint32(i)) {
			d.holders[i] = uint8(min(r.Holders(uint32(i)), 255))
		}
	}
	for _, report := range r.Reports() {
		for i := range d.witnesses {
			if w := &d.witnesses[i]; w.member == report.Member && report.Params != (wire.Hash{}) {
				w.params = report.Params.String()
			}
		}
	}
}

// close notes the ends of rounds, and puts those of which all is known into the curves.
func (h *history) close(s *runlog.Standing) {
	running := s.Phase == coordinator.RoundTrain.String() || s.Phase == coordinator.RoundWitness.String()
	from := max(0, len(h.rounds)-4)
	for i := from; i < len(h.rounds); i++ {
		r := &h.rounds[i]
		current := r.number == s.Round
		if current && s.Phase == coordinator.RoundWitness.String() {
			r.witnessMs = s.SinceMs
		}
		switch {
		case r.endMs != 0 || r.openedMs == 0:
		case i+1 < len(h.rounds) && h.rounds[i+1].number == r.number+1 && h.rounds[i+1].openedMs >= r.openedMs:
			r.endMs = h.rounds[i+1].openedMs
		case current && !running && s.SinceMs >= r.openedMs:
			r.endMs = s.SinceMs
		}
		if r.step != 0 && r.endMs != 0 && r.final && !r.charted {
			r.charted = true
			tokens := (s.Points - min(s.Points, h.checked)) * uint64(s.SeqTokens)
			h.seconds.add(r.step, tokens, float64(r.endMs-r.openedMs)/1000)
			h.size.add(r.step, tokens, float64(r.active))
		}
	}
}

// record returns the record of a round, new if need be, and its detail. It returns nil for a round
// older than all that are kept, and nil for a detail that is not kept.
func (h *history) record(number uint32) (*roundRecord, *roundDetail) {
	if n := len(h.rounds); n == 0 || h.rounds[n-1].number < number {
		if n >= roundsMax {
			h.rounds = slices.Delete(h.rounds, 0, roundsMax/4)
		}
		if len(h.details) >= detailsMax {
			h.details = slices.Delete(h.details, 0, 1)
		}
		h.rounds = append(h.rounds, roundRecord{number: number})
		d := &roundDetail{number: number}
		if h.earlyOf == number {
			d.commitments, h.early = h.early, nil
		}
		h.details = append(h.details, d)
	}
	i, ok := h.find(number)
	if !ok {
		return nil, nil
	}
	return &h.rounds[i], h.detail(number)
}

// find returns the index of a round's record.
func (h *history) find(number uint32) (int, bool) {
	return slices.BinarySearchFunc(h.rounds, number, func(r roundRecord, n uint32) int { return int(int64(r.number) - int64(n)) })
}

// detail returns the detail of a round, nil if it is not kept.
func (h *history) detail(number uint32) *roundDetail {
	i, ok := slices.BinarySearchFunc(h.details, number, func(d *roundDetail, n uint32) int { return int(int64(d.number) - int64(n)) })
	if !ok {
		return nil
	}
	return h.details[i]
}

// keyOf returns the key of the member that had a place in the round, "" if it is not known.
func (h *history) keyOf(d *roundDetail, i uint32) string {
	if k, ok := d.former[i]; ok {
		return k
	}
	if int(i) < len(h.members) {
		return h.members[i].Key.String()
	}
	return ""
}

// count returns how many members are in a set.
func count(s runlog.Set) (n uint32) {
	for i := range uint32(8 * len(s)) {
		if s.Has(i) {
			n++
		}
	}
	return n
}
