package view

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// Limits of a history. The sizes are of a run with 10,000 members.
const (
	HistoryKept   = 1 << 16 // rounds, 500 bytes each: 33 MB
	DetailsKept   = 256     // rounds with the deeds of each member, 25 kB each: 6 MB
	turnsMax      = 1 << 14 // arrivals and departures, 100 bytes each
	committedMax  = 1024    // commitments of a round that are remembered
	roundsInState = 4       // that a coordinator keeps
)

// detail is who did what in a round. Members are named by their places.
type detail struct {
	active, expected, accepted runlog.Set

	// shares holds the sequences of those expected, in their order. It is empty where shares are
	// equal.
	shares []uint32
	// holders counts the witnesses that hold a member's result. It is nil before a state told.
	holders     []uint8
	former      map[coordinator.Member]string // keys of places that others have taken since
	commitments map[coordinator.Member]string // IDs that the participant saw
}

// Witness is a seat of a round.
type Witness struct {
	Member   coordinator.Member `json:"member"`
	Key      string             `json:"key"`
	Reported bool               `json:"reported"`
	Complete bool               `json:"complete"`         // it held every result
	Ms       uint64             `json:"ms"`               // ledger time when its report was first seen
	Params   string             `json:"params,omitempty"` // that it reported, if known
}

// Turn is the arrival or the departure of a member.
type Turn struct {
	Key   string            `json:"key"`
	Ms    uint64            `json:"ms"`
	Round coordinator.Round `json:"round"`
	What  string            `json:"what"` // joined, dropped, withdrawn, ejected, replaced
}

// Work is a member's part in a round.
type Work struct {
	Round      coordinator.Round  `json:"round"`
	Step       coordinator.Step   `json:"step"`
	Epoch      coordinator.Epoch  `json:"epoch"`
	Member     coordinator.Member `json:"member"`
	Key        string             `json:"key"`
	Shared     bool               `json:"shared"`    // it had a share
	Sequences  uint64             `json:"sequences"` // of its share
	Holders    int                `json:"holders"`   // witnesses that held its result; -1: not known
	Quorum     uint32             `json:"quorum"`
	Seats      uint32             `json:"seats"`
	Final      bool               `json:"final"`
	Accepted   bool               `json:"accepted"`
	Points     uint64             `json:"points"`     // for it
	Commitment string             `json:"commitment"` // its ID, "" if not seen here
	Check      string             `json:"check"`      // open, disputed, right, convicted or ""
	Seat       bool               `json:"seat"`       // it was a witness
	Reported   bool               `json:"reported"`
	Complete   bool               `json:"complete"`
}

// KeepHistory makes the fold keep the rounds of a long run, and who did what in the newest ones.
func (f *Fold) KeepHistory() { f.kept = HistoryKept }

// Begun reports whether the fold has seen a state of the run.
func (f *Fold) Begun() bool { return f.seen }

// Rounds returns the number of rounds that the fold keeps.
func (f *Fold) Rounds() int { return len(f.rounds) }

// Round returns a round by its age: 0 is the newest.
func (f *Fold) Round(age int) Round { return f.rounds[len(f.rounds)-1-age].summary(age == 0) }

// Age returns the age of a round, and false if it is not kept.
func (f *Fold) Age(number coordinator.Round) (int, bool) {
	i, ok := f.search(number)
	return len(f.rounds) - 1 - i, ok
}

func (f *Fold) search(number coordinator.Round) (int, bool) {
	return slices.BinarySearchFunc(f.rounds, number, func(r *round, n coordinator.Round) int { return cmp.Compare(r.Number, n) })
}

// Detailed reports whether the fold knows who did what in a round.
func (f *Fold) Detailed(number coordinator.Round) bool {
	r := f.find(number)
	return r != nil && r.detail != nil
}

// Works returns what members did with their shares of a round: at most n, from the one at from.
func (f *Fold) Works(number coordinator.Round, from, n int) []Work {
	list := []Work{}
	r := f.find(number)
	if r == nil || r.detail == nil {
		return list
	}
	seen := 0
	for i := coordinator.Member(0); int(i) < 8*len(r.detail.expected) && seen < from+n; i++ {
		if !r.detail.expected.Has(i) {
			continue
		}
		if seen >= from {
			list = append(list, f.work(r, i))
		}
		seen++
	}
	return list
}

// WorksOf returns what the member with a place and a key did in the rounds of which that is known,
// newest first.
func (f *Fold) WorksOf(member coordinator.Member, key string) []Work {
	list := []Work{}
	for _, r := range slices.Backward(f.rounds) {
		if r.detail == nil {
			break
		}
		if r.detail.active.Has(member) && f.keyIn(r, member) == key {
			list = append(list, f.work(r, member))
		}
	}
	return list
}

// Turns returns the arrivals and departures of the member with a key, newest first, at most n.
func (f *Fold) Turns(key string, n int) []Turn {
	list := []Turn{}
	for _, t := range slices.Backward(f.turns) {
		if t.Key == key && len(list) < n {
			list = append(list, t)
		}
	}
	return list
}

// Held returns the number of results of a round that a quorum holds, and the number expected.
func (f *Fold) Held(number coordinator.Round, quorum uint32) (held, of uint32) {
	r := f.find(number)
	if r == nil || r.detail == nil {
		return 0, 0
	}
	for i, n := range r.detail.holders {
		if r.detail.expected.Has(coordinator.Member(i)) && uint32(n) >= quorum {
			held++
		}
	}
	return held, r.detail.expected.Count()
}

// Observe adds to the newest rounds what a state tells and a log does not: the number of witnesses
// that hold each result, and the parameters that they reported.
func (f *Fold) Observe(s coordinator.State) {
	for number := s.Round() - min(s.Round(), roundsInState-1); number <= s.Round(); number++ {
		now, ok := s.At(number)
		r := f.find(number)
		if !ok || r == nil || r.detail == nil {
			continue
		}
		r.detail.holders = make([]uint8, s.Count())
		for i := range coordinator.Member(len(r.detail.holders)) {
			if r.detail.expected.Has(i) {
				r.detail.holders[i] = uint8(min(now.Holders(i), 255))
			}
		}
		for _, report := range now.Reports() {
			for i := range r.Witnesses {
				if w := &r.Witnesses[i]; w.Member == report.Member && report.Params != (wire.Hash{}) {
					w.Params = report.Params.String()
				}
			}
		}
	}
}

// work returns what a member did in a round that has its detail.
func (f *Fold) work(r *round, i coordinator.Member) Work {
	d := r.detail
	w := Work{
		Round: r.Number, Step: r.Step, Epoch: r.Epoch, Member: i, Key: f.keyIn(r, i), Shared: d.expected.Has(i), Sequences: r.sequences(i),
		Holders: -1, Quorum: r.Quorum, Seats: r.Seats, Final: r.Final, Accepted: d.accepted.Has(i), Commitment: d.commitments[i], Check: f.checkOf(r, i),
	}
	if int(i) < len(d.holders) {
		w.Holders = int(d.holders[i])
	}
	if w.Accepted && r.Agreed != "" {
		w.Points = w.Sequences
	}
	for _, seat := range r.Witnesses {
		if seat.Member == i {
			w.Seat, w.Reported, w.Complete = true, seat.Reported, seat.Complete
		}
	}
	return w
}

// checkOf returns what is known of the check of a result.
func (f *Fold) checkOf(r *round, member coordinator.Member) string {
	if t := f.run.Trust; t != nil {
		if i, ok := slices.BinarySearchFunc(t.Checks, Check{Round: r.Number, Member: member}, compareChecks); ok && t.Checks[i].Disputed {
			return "disputed"
		} else if ok {
			return "open"
		}
	}
	if int(member) >= len(r.marks) {
		return ""
	}
	return map[Mark]string{Verified: "right", Wrong: "convicted"}[r.marks[member]]
}

// keyIn returns the key of the member that had a place in a round, "" if it is not known.
func (f *Fold) keyIn(r *round, i coordinator.Member) string {
	if r.detail != nil {
		if k, ok := r.detail.former[i]; ok {
			return k
		}
	}
	return f.keyOf(i)
}

// replaced remembers the key of a place that goes to another.
func (f *Fold) replaced(i coordinator.Member, key string) {
	for _, r := range slices.Backward(f.rounds) {
		if r.detail == nil {
			return
		}
		if _, ok := r.detail.former[i]; !ok && r.detail.active.Has(i) {
			if r.detail.former == nil {
				r.detail.former = map[coordinator.Member]string{}
			}
			r.detail.former[i] = key
		}
	}
}

// turned notes that a member came or went.
func (f *Fold) turned(key, what string) {
	if len(f.turns) >= turnsMax {
		f.turns = slices.Delete(f.turns, 0, turnsMax/4)
	}
	f.turns = append(f.turns, Turn{Key: key, Ms: f.run.StateMs, Round: f.run.Round, What: what})
}

// commitment remembers the ID of a member's commitment.
func (f *Fold) commitment(number coordinator.Round, member coordinator.Member, id string) {
	if r := f.heard(number); r != nil && r.detail != nil && len(r.detail.commitments) < committedMax {
		if r.detail.commitments == nil {
			r.detail.commitments = map[coordinator.Member]string{}
		}
		r.detail.commitments[member] = id
	}
}

// sequences returns the number of sequences in the share of an active member: what the log tells,
// or where shares are equal as coordinator.Round.Share, from what is kept of the round.
func (r *round) sequences(i coordinator.Member) uint64 {
	d := r.detail
	if r.Active == 0 || !d.expected.Has(i) {
		return 0
	}
	if n := rankIn(d.expected, i); len(d.shares) > 0 {
		if n >= len(d.shares) {
			return 0
		}
		return uint64(d.shares[n])
	}
	seed, _ := wire.ParseHash(r.Seed)
	line := committee.Line(seed, committee.Trainers, r.Active, r.Active)
	_, n := batch.Split(r.Batch, r.Active, uint32(slices.Index(line, uint32(rankIn(d.active, i)))))
	return uint64(n)
}

// rankIn returns how many of a set come before member i, which is in it.
func rankIn(set runlog.Set, i coordinator.Member) int {
	return bits.OnesCount8(set[i>>3]&(1<<(i&7)-1)) + int(set[:i>>3].Count())
}
