package client

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// The owner of a bucket decides who reads what in it, and when. A result that it shows to a quorum
// of the witnesses alone is accepted, and without help nobody else could apply the accepted set.
// So a member or validator that lacks results says which, and the witnesses, whose reports decide
// what is accepted, put copies of these into their own buckets. Nobody is trusted: a copy must be
// the commitment whose ID the ledger has, and open it.
//
// In eighths of a window, with those of window r+1 first, for the results of r:
//
//	3           who lacks results that may count says so (Lack)
//	4, 6, 9     the witnesses of r+1 read who lacks what (AskLacks), and copy what they hold (Copy)
//	5 to 15     who lacks results looks for copies (FindCopy)
//	8           r's set is decided: who lacks results of it says so again
//
// One that names what it has costs each witness lacksServed copies each time, and all of them
// together copiesMax. Validators (package validator) keep the same times.
const (
	eighths   = 8
	tellAt    = 3
	findAt    = 5
	decidedAt = eighths
)

var readAt = [...]int{4, 6, 9}

const (
	// lacksServed is how many results a witness copies for one member each time it reads the lists.
	lacksServed = 8
	// copiesMax is how many it copies each time at least, and one more for copiesPer members.
	copiesMax = 8
	copiesPer = 8
	// buckets in which a copy is looked for at a time
	copiesFrom = 8
)

// Lack publishes whose results of a round this member lacks: bit i%8 of byte i/8 is member i's.
type Lack struct {
	Round   coordinator.Round
	Members []byte
}

// AskLacks reads what members and validators say that they lack of a round. It ends in Lacked.
type AskLacks struct {
	Round coordinator.Round
	Of    []key.Public
}

// Lacked ends AskLacks with the lists of those that said something, as in Lack.
type Lacked struct {
	Round coordinator.Round
	Lists [][]byte
}

// Copy publishes a copy of a member's result, of which the driver holds the slice that Seed draws.
type Copy struct {
	Round   coordinator.Round
	Member  coordinator.Member
	ID      wire.Hash // of the commitment
	Payload wire.Hash
	Seed    wire.Hash
}

// FindCopy looks for a copy of the result that is committed to by ID, and of the slice of it that
// Seed draws, in others' buckets one after the other. If there is one, CommitmentReceived comes
// first. It ends in Found.
type FindCopy struct {
	Round  coordinator.Round
	Member coordinator.Member
	ID     wire.Hash
	Seed   wire.Hash
	From   []key.Public
}

// Found ends a FindCopy action. OK means that the driver holds the slice.
type Found struct {
	Round  coordinator.Round
	Member coordinator.Member
	ID     wire.Hash
	OK     bool
}

func (Lack) action()     {}
func (AskLacks) action() {}
func (Copy) action()     {}
func (FindCopy) action() {}
func (Lacked) event()    {}
func (Found) event()     {}

// help is what was done about results of a round that some members lack.
type help struct {
	round  coordinator.Round
	done   int // eighths of the window that were dealt with, and before
	copied map[coordinator.Member]bool
	lacks  []byte                      // what this member lacked when it last looked
	tries  int                         // number of times that it looked
	finds  map[coordinator.Member]bool // under way
	tried  map[coordinator.Member]bool // since it last looked
}

// help says what this member lacks, looks for it, and helps others that lack something.
func (m *bucketExchange) help() {
	now := m.state.Round()
	for round := now - min(now, 2); round < now; round++ {
		r, ok := m.state.At(round)
		if next, found := m.state.At(round + 1); !ok || !found || next.Attests() != round {
			continue
		}
		eighth := eighths * int(now-round-1)
		if past := m.ledgerMs(); m.state.Phase() == coordinator.RoundTrain {
			past -= min(past, m.state.PhaseSince())
			eighth += int(min(past*eighths/max(uint64(m.run.RoundTrainMs), 1), eighths-1))
		} else {
			eighth += eighths - 1
		}
		h := m.helping(round)
		if h == nil {
			h = &help{round: round, copied: map[coordinator.Member]bool{}, finds: map[coordinator.Member]bool{}, tried: map[coordinator.Member]bool{}}
			m.helps[0], m.helps[1] = m.helps[1], h
		}
		if h.done >= eighth {
			continue
		}
		before := h.done
		h.done = eighth
		due := func(at int) bool { return before < at && at <= eighth }
		for _, at := range readAt {
			if due(at) {
				m.readLacks(r)
				break
			}
		}
		if eighth < tellAt || m.model.round >= round+2 {
			continue // its set was applied
		}
		lacking := m.lacking(r)
		if (due(tellAt) || due(decidedAt)) && len(lacking) > 0 {
			m.do(Lack{Round: round, Members: lacking})
		}
		if eighth >= findAt {
			h.lacks = lacking
			h.tries++
			clear(h.tried)
			m.search(r, h)
		}
	}
}

// helping returns what was done for a round, nil if nothing was.
func (m *bucketExchange) helping(round coordinator.Round) *help {
	for _, h := range m.helps {
		if h != nil && h.round == round {
			return h
		}
	}
	return nil
}

// lacking returns the members whose results of a round this one lacks: the accepted ones once these
// are known, and before that all on the ledger.
func (m *bucketExchange) lacking(r coordinator.RoundState) (bitmap []byte) {
	rs := m.results(r.Number())
	for i := range m.state.Count() {
		_, committed := r.Committed(i)
		if i == m.member.index || !committed || r.Final() && !r.Accepted(i) {
			continue
		}
		c := m.best(rs, i, false)
		if c == nil && len(rs.known.Of(i)) == 0 || c != nil && !c.held {
			bitmap = coordinator.SetHeld(bitmap, i)
		}
	}
	return bitmap
}

// readLacks reads the lists of the others, beginning with another one each time, if this member is
// a witness of the round's results.
func (m *bucketExchange) readLacks(r coordinator.RoundState) {
	next, _ := m.state.At(r.Number() + 1)
	if !next.Elected(m.member.index) {
		return
	}
	a := AskLacks{Round: r.Number()}
	n := m.state.Count()
	for k := range n {
		i := (k + m.member.index + coordinator.Member(m.now)) % n
		if i != m.member.index && m.state.Status(i) == coordinator.StatusActive {
			a.Of = append(a.Of, m.state.Key(i))
		}
	}
	for _, v := range m.state.Validators() {
		a.Of = append(a.Of, v.Key)
	}
	m.do(a)
}

// lacked copies what others lack and this member holds, in turn for each of them.
func (m *bucketExchange) lacked(ev Lacked) {
	next, ok := m.state.At(ev.Round + 1)
	rs, h := m.find(ev.Round), m.helping(ev.Round)
	if !ok || rs == nil || h == nil {
		return
	}
	seed, _ := m.seed(ev.Round)
	own := m.toCopy(rs, next.Witnesses(), h)
	left := copiesMax + m.state.Count()/copiesPer
	for range lacksServed {
		for _, list := range ev.Lists {
			k := slices.IndexFunc(own, func(i coordinator.Member) bool {
				return int(i/8) < len(list) && list[i/8]>>(i%8)&1 == 1 && !h.copied[i]
			})
			if k < 0 {
				continue
			}
			if left == 0 {
				return
			}
			left--
			i := own[k]
			c := m.best(rs, i, true)
			h.copied[i] = true
			m.do(Copy{Round: ev.Round, Member: i, ID: c.id, Payload: c.commitment.Payload, Seed: seed})
		}
	}
}

// toCopy returns whose results this witness holds and has not copied, beginning with those for
// which it is the likeliest to be asked.
func (m *bucketExchange) toCopy(rs *results, witnesses []coordinator.Member, h *help) (members []coordinator.Member) {
	seat := slices.Index(witnesses, m.member.index)
	for distance := range witnesses {
		for i := (seat + len(witnesses) - distance) % len(witnesses); i < int(m.state.Count()); i += len(witnesses) {
			if k := coordinator.Member(i); k != m.member.index && !h.copied[k] && m.best(rs, k, true) != nil {
				members = append(members, k)
			}
		}
	}
	return members
}

// search looks for copies of what this member lacks, some at a time.
func (m *bucketExchange) search(r coordinator.RoundState, h *help) {
	next, _ := m.state.At(r.Number() + 1)
	witnesses := next.Witnesses()
	seed, _ := m.seed(r.Number())
	for i := range min(m.state.Count(), coordinator.Member(8*len(h.lacks))) {
		if len(h.finds) == fetchesMax {
			return
		}
		if h.lacks[i/8]>>(i%8)&1 == 0 || h.tried[i] || h.finds[i] {
			continue
		}
		a := FindCopy{Round: r.Number(), Member: i, Seed: seed}
		a.ID, _ = r.Committed(i)
		for k := range witnesses {
			w := witnesses[(int(i)+(h.tries-1)*copiesFrom+k)%len(witnesses)]
			if w != m.member.index && w != i && len(a.From) < copiesFrom {
				a.From = append(a.From, m.state.Key(w))
			}
		}
		h.finds[i], h.tried[i] = true, true
		m.do(a)
	}
}

// found takes the outcome of a FindCopy.
func (m *bucketExchange) found(ev Found) {
	if h := m.helping(ev.Round); h != nil {
		delete(h.finds, ev.Member)
		if r, ok := m.state.At(ev.Round); ok && m.model.round < ev.Round+2 {
			m.search(r, h)
		}
	}
	rs := m.find(ev.Round)
	if !ev.OK || rs == nil {
		return
	}
	for k := range rs.known.Of(ev.Member) {
		c := &rs.known.Of(ev.Member)[k]
		c.held = c.held || c.id == ev.ID
	}
}
