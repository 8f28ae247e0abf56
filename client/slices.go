package client

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/client/holders"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// In a run of slices, no member fetches all payloads. When a round opens, its seed divides the
// active members into groups of Config.Aggregators or more, and gives each group a slice of the
// payloads of the round before. Each member, as an aggregator, fetches the range of its slice of
// every payload, and shows which ranges it holds. A witness attests a result if enough of every
// group hold their range of it. Once the accepted set is final, each aggregator sums its slice.
// Members follow as in a run of followers, and a witness makes the update from slices: of each it
// takes what a quorum of its group names.
//
// A witness therefore believes nothing that another witness says, and no member alone. To invent a
// slice takes SliceQuorum of its group. Where no slice has a quorum, the witness fetches all ranges
// of it and sums it itself. With half of a group a gang can say that a range is held that only it
// has, or deny that any is. Groups are large, so that neither is likely: docs/security.md.
//
// The seed is unpredictable when payloads are committed to, and an aggregator has no say in what it
// is given.

// SliceQuorum returns how many members of a group of n must name the same slice.
func SliceQuorum(n int) int { return n*3/5 + 1 }

// ShowHeld has the driver tell those who ask which ranges of a round's payloads this member holds:
// for each member, by index, 0 or the tag of a commitment.
type ShowHeld struct {
	Round coordinator.Round
	Tags  []byte
}

// AskHeld asks aggregators what they show. It ends in HeldShown for each that shows something else
// than it showed before.
type AskHeld struct {
	Round coordinator.Round
	To    []key.Public
	Shown [][]byte // by each before, nil: nothing
}

// HeldShown brings what an aggregator shows.
type HeldShown struct {
	Round coordinator.Round
	By    key.Public
	Tags  []byte
}

// SumSlice makes this member's slice of the update of a round's accepted set from ranges of its
// payloads, and serves it. It ends in SliceSummed.
type SumSlice struct {
	Round         coordinator.Round
	Slice, Slices int
	Payloads      []wire.Hash
}

// Recount makes any slice, as SumSlice does, for this member alone. It fetches the ranges from
// their authors, or else from other holders. It ends in SliceSummed.
type Recount struct {
	SumSlice
	Authors []key.Public // of each payload
	Holders []key.Public
}

// SliceSummed ends a SumSlice or Recount action. The root is zero if it failed.
type SliceSummed struct {
	Round coordinator.Round
	Slice int
	Update
}

// AskSlices asks aggregators for the slice that they summed. It ends in SliceNamed for each that
// has.
type AskSlices struct {
	Round coordinator.Round
	To    []key.Public
}

// SliceNamed brings what an aggregator says of its slice.
type SliceNamed struct {
	Round coordinator.Round
	By    key.Public
	Update
}

// FetchSlice fetches a slice of an update, in WithinMs at most. It ends in SliceFetched.
type FetchSlice struct {
	Round         coordinator.Round
	Slice, Slices int
	Update
	WithinMs uint64
	From     []key.Public
}

// SliceFetched ends a FetchSlice action.
type SliceFetched struct {
	Round coordinator.Round
	Slice int
	OK    bool
}

func (ShowHeld) action()    {}
func (AskHeld) action()     {}
func (SumSlice) action()    {}
func (Recount) action()     {}
func (AskSlices) action()   {}
func (FetchSlice) action()  {}
func (HeldShown) event()    {}
func (SliceSummed) event()  {}
func (SliceNamed) event()   {}
func (SliceFetched) event() {}

// sharing is how far the slices of a round's update have come.
type sharing struct {
	groups [][]coordinator.Member            // by slice
	slice  []int                             // by member, -1: none
	index  map[key.Public]coordinator.Member // of the members, once one of them has said something
	own    int                               // this member's, -1: none

	changed bool // this member holds more ranges than it showed
	shownAt uint64

	held     *holders.Table // what aggregators show to a witness, nil before it is wanted
	lookedAt uint64
	begunAt  uint64 // when it was looked at first
	askedAt  uint64 // or that
	asks     int

	summing bool
	sums    []summed // by slice
	sinceMs uint64   // when all slices were wanted first
	namedAt uint64
	making  bool
	made    wire.Hash // the update that the slices make
}

// summed is what is known of a slice.
type summed struct {
	named    []SliceNamed
	choice   Update // that a quorum names
	fetching bool   // or summed here
	tries    int
	triedAt  uint64
	held     wire.Hash // its root, once it is here
}

// slices reports whether updates of the run are made in slices.
func (m *Machine) slices() bool { return m.cfg.Aggregators > 0 }

// shared returns the slices of a round's update. It returns nil while they are not drawn, and in a
// round without results.
func (m *Machine) shared(rs *results) *sharing {
	if rs.sharing != nil || !m.slices() || rs.Shares == nil || rs.Count == 0 {
		return rs.sharing
	}
	r, ok := m.attestedIn(rs.number)
	if !ok {
		return nil
	}
	var active []coordinator.Member
	for i := range m.state.Count() {
		if r.Active(i) {
			active = append(active, i)
		}
	}
	random := prng.New(r.Seed(), "slices")
	random.Shuffle(len(active), func(i, k int) { active[i], active[k] = active[k], active[i] })
	n := int(max(1, min(m.cfg.SlicesMax, uint32(len(active))/m.cfg.Aggregators)))
	sh := &sharing{
		groups: make([][]coordinator.Member, n), slice: make([]int, m.state.Count()), own: -1,
		sums: make([]summed, n), changed: true,
	}
	for i := range sh.slice {
		sh.slice[i] = -1
	}
	for k, i := range active {
		sh.groups[k%n] = append(sh.groups[k%n], i)
		sh.slice[i] = k % n
	}
	if m.member.known && int(m.member.index) < len(sh.slice) {
		sh.own = sh.slice[m.member.index]
	}
	rs.sharing = sh
	return sh
}

// aggregates reports whether this member has a slice of a round's update.
func (m *Machine) aggregates(rs *results) bool {
	sh := m.shared(rs)
	return sh != nil && sh.own >= 0
}

// aggregator returns the index of a member with a slice.
func (m *Machine) aggregator(rs *results, k key.Public) (i coordinator.Member, ok bool) {
	sh := rs.sharing
	if sh.index == nil {
		sh.index = m.cfg.Common.Roster(m.state, nil).Index
	}
	if i, ok = sh.index[k]; !ok || m.state.Key(i) != k {
		i, ok = m.state.Find(k)
	}
	return i, ok && int(i) < len(sh.slice) && sh.slice[i] >= 0
}

// decideSlices does an aggregator's part in the rounds whose results are not applied yet, and asks
// what a witness has to know of others.
func (m *Machine) decideSlices() {
	if !m.slices() {
		return
	}
	for _, rs := range m.rounds {
		r, ok := m.state.At(rs.number)
		if !ok || m.shared(rs) == nil {
			continue
		}
		if r.Final() {
			m.sum(rs, r)
			continue
		}
		m.showHeld(rs)
		m.askHeld(rs)
	}
}

// aggregated takes an event of a run of slices.
func (m *Machine) aggregated(ev Event) {
	switch ev := ev.(type) {
	case HeldShown:
		m.heldShown(ev)
	case SliceSummed:
		m.sliceSummed(ev)
	case SliceNamed:
		m.sliceNamed(ev)
	case SliceFetched:
		m.sliceFetched(ev)
	}
}

// sum sums this member's slice once the accepted set is final and its ranges are here.
func (m *Machine) sum(rs *results, r coordinator.RoundState) {
	sh := rs.sharing
	if sh.own < 0 || sh.summing || r.AcceptedCount() == 0 {
		return
	}
	payloads, complete := m.accepted(rs.number)
	if complete {
		sh.summing = true
		m.do(SumSlice{Round: rs.number, Slice: sh.own, Slices: len(sh.groups), Payloads: payloads})
	}
}

func (m *Machine) sliceSummed(ev SliceSummed) {
	if rs := m.find(ev.Round); rs != nil && rs.sharing != nil && ev.Slice < len(rs.sharing.sums) {
		s := &rs.sharing.sums[ev.Slice]
		s.held, s.fetching = ev.Root, false
	}
}

// recount sums a slice of whose group too few name the same.
func (m *Machine) recount(rs *results, slice int) {
	r, ok := m.state.At(rs.number)
	if !ok || !r.Final() {
		return
	}
	rs.accept(r)
	sh, set := rs.sharing, rs.accepting
	a := Recount{SumSlice: SumSlice{Round: rs.number, Slice: slice, Slices: len(sh.groups)}}
	for i := range set.chosen {
		if k := m.chosen(rs, coordinator.Member(i)); k >= 0 {
			c := rs.known.Of(coordinator.Member(i))[k].commitment
			a.Payloads, a.Authors = append(a.Payloads, c.Payload), append(a.Authors, m.state.Key(c.Member))
		}
	}
	if len(set.missing()) > 0 {
		m.askMissing(rs, set.missing)
		return
	}
	s, group := &sh.sums[slice], sh.groups[slice]
	for k := range min(fromMax, len(group)) {
		a.Holders = append(a.Holders, m.state.Key(group[(int(m.member.index)+s.tries*fromMax+k)%len(group)]))
	}
	s.tries++
	s.fetching = true
	m.do(Note{fmt.Sprintf("slice %d of round %d has no quorum: summed here", slice, rs.number)})
	m.do(a)
}

func (m *Machine) sliceNamed(ev SliceNamed) {
	rs := m.find(ev.Round)
	if rs == nil || rs.sharing == nil {
		return
	}
	i, ok := m.aggregator(rs, ev.By)
	if !ok {
		return
	}
	s := &rs.sharing.sums[rs.sharing.slice[i]]
	if s.names(ev.By) {
		return
	}
	s.named = append(s.named, ev)
	if len(s.by(ev.Update)) >= SliceQuorum(len(rs.sharing.groups[rs.sharing.slice[i]])) {
		s.choice = ev.Update
	}
}

// names reports whether a member has named the slice.
func (s *summed) names(k key.Public) bool {
	return slices.ContainsFunc(s.named, func(n SliceNamed) bool { return n.By == k })
}

// by returns the members that name an update as the slice.
func (s *summed) by(u Update) (list []key.Public) {
	for _, n := range s.named {
		if n.Update == u {
			list = append(list, n.By)
		}
	}
	return list
}

func (m *Machine) sliceFetched(ev SliceFetched) {
	rs := m.find(ev.Round)
	if rs == nil || rs.sharing == nil || ev.Slice >= len(rs.sharing.sums) {
		return
	}
	s := &rs.sharing.sums[ev.Slice]
	s.fetching = false
	if ev.OK {
		s.held = s.choice.Root
	}
}

// assemble returns the root of the update of a round's accepted set, made from slices, or asks for
// what is due to make it.
func (m *Machine) assemble(rs *results) (root wire.Hash) {
	sh := m.shared(rs)
	if sh == nil || sh.making || !sh.made.IsZero() {
		if sh != nil {
			root = sh.made
		}
		return root
	}
	if sh.sinceMs == 0 {
		sh.sinceMs = max(m.now, 1)
	}
	var roots []wire.Hash
	asks := m.due(&sh.namedAt, reFollowMs)
	late := m.now >= sh.sinceMs+m.run.RoundTrainMs/followForPart
	var ask []key.Public
	for slice := range sh.sums {
		s, group := &sh.sums[slice], sh.groups[slice]
		if !s.held.IsZero() {
			roots = append(roots, s.held)
			continue
		}
		chosen := !s.choice.Root.IsZero()
		switch {
		case s.fetching:
		case chosen && m.due(&s.triedAt, reFetchMs):
			s.fetching = true
			by := s.by(s.choice)
			k := (int(m.member.index) + s.tries) % len(by)
			s.tries++
			from := append(by[k:len(by):len(by)], by[:k]...)
			m.do(FetchSlice{Round: rs.number, Slice: slice, Slices: len(sh.groups), Update: s.choice,
				WithinMs: m.run.RoundTrainMs / followForPart, From: from[:min(len(from), fromMax)]})
		case !chosen && late && m.due(&s.triedAt, reFetchMs):
			m.recount(rs, slice)
		case !chosen && asks:
			for _, i := range group {
				if k := m.state.Key(i); k != m.cfg.Self && !s.names(k) {
					ask = append(ask, k)
				}
			}
		}
	}
	if len(ask) > 0 {
		m.do(AskSlices{Round: rs.number, To: ask})
	}
	if len(roots) == len(sh.sums) {
		sh.making = true
		m.do(MakeUpdate{Round: rs.number, Slices: roots})
	}
	return root
}
