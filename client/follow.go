package client

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// In a run of followers, a member fetches the payloads of a round only if it attests them.
// Otherwise, once the accepted set is final, it asks witnesses that attested it for the root of its
// update, fetches that from any holder, and applies it.
//
// It takes the root that all of the first few witnesses name, drawn by the round's seed and its
// key. If they differ or are slow, it asks all of them and takes the root that a quorum names.
// Without one in time, or if nobody serves the update, it fetches the payloads after all, unless
// they weigh more than the model. It does not ask a liar again for a while.
//
// A follower that is deceived loses its results until the next agreement, and heals. It must not
// mislead the run: parameters are agreed when two committees in a row name them, each of which has
// computed them. So a follower that is elected makes the updates that it has applied since the
// agreed parameters again, from the payloads, while it trains, and names its parameters only if
// they are the same (vouches). That takes a witness the payloads of two more rounds. Members follow
// only if all of them together receive less.
const (
	followFirst = 5  // witnesses asked first: a third of all, lying, deceive one follower in 243
	shunRounds  = 64 // for which a liar is not asked
	// In parts of the time to train: how often they are asked, at most; after which the others are
	// asked too; and how long a follower waits for answers, and then for its fetch.
	followAskPart = 64
	followAllPart = 16
	followForPart = 4
	// How often the time that they are given is doubled.
	followTries = 4
)

// VouchRounds is the number of rounds of whose payloads a witness in a run of followers fetches
// all: those that it attests, and those that lead to its parameters from the agreed ones.
const VouchRounds = 3

// AskUpdate asks witnesses for the update that the accepted set of a round makes. It ends in
// UpdateNamed for each that knows.
type AskUpdate struct {
	Round coordinator.Round
	To    []key.Public
}

// UpdateNamed brings what a witness says of the update of a round's accepted set.
type UpdateNamed struct {
	Round coordinator.Round
	By    key.Public
	Update
}

// Update names an update: its merkle.BlobRoot and its length.
type Update struct {
	Root  wire.Hash
	Bytes uint64
}

// FetchUpdate fetches and checks an update, in WithinMs at most.
type FetchUpdate struct {
	Round coordinator.Round
	Update
	WithinMs uint64
	From     []key.Public
}

// UpdateFetched ends a FetchUpdate action. OK means that the update is there and well formed.
// Refused means that it is there and not.
type UpdateFetched struct {
	Round   coordinator.Round
	Root    wire.Hash
	OK      bool
	Refused bool
}

// MakeUpdate makes the update of a round's accepted set from its payloads, or from all its slices,
// and serves it. It ends in UpdateMade.
type MakeUpdate struct {
	Round    coordinator.Round
	Payloads []wire.Hash
	Slices   []wire.Hash
}

// UpdateMade ends a MakeUpdate action. Root is zero if it failed.
type UpdateMade struct {
	Round coordinator.Round
	Root  wire.Hash
}

func (MakeUpdate) action()   {}
func (UpdateMade) event()    {}
func (AskUpdate) action()    {}
func (FetchUpdate) action()  {}
func (UpdateNamed) event()   {}
func (UpdateFetched) event() {}

// following is how far the update of a round has come.
type following struct {
	sinceMs   uint64 // when it was wanted first
	askedAt   uint64
	order     []key.Public // witnesses to ask
	all       bool         // all of them are asked
	tries     uint8        // how often it was begun again
	quorum    int
	named     []UpdateNamed
	fetching  wire.Hash
	applied   coordinator.Round // of whose start it made the parameters, 0: not yet
	used      wire.Hash         // the root of what did
	held      wire.Hash         // the root of the update that is there
	over      bool              // the payloads are fetched instead, or the slices
	assembled bool              // what is held was made here, from slices
	// It was applied and not made here, and is being made here.
	unchecked, making bool
}

// follows reports whether the members that do not attest a round's results are to follow: because
// then all together receive less.
func (m *Machine) follows(rs *results) bool {
	if rs.Shares == nil || m.cfg.Update == 0 {
		return false
	}
	if m.slices() {
		return true
	}
	return uint64(rs.Count) > uint64(VouchRounds*rs.witnesses)+m.cfg.Update/uint64(m.cfg.PayloadMax)
}

// attestedIn returns the round whose witnesses attest the results of round a. ok is false while it
// is not open.
func (m *Machine) attestedIn(a coordinator.Round) (r coordinator.RoundState, ok bool) {
	r, ok = m.state.At(a + coordinator.Round(m.run.Overlap))
	return r, ok && r.Attests() == a
}

// takes reports whether this member fetches the payloads of a round, or a range of each.
func (m *Machine) takes(rs *results) bool {
	if m.slices() {
		return m.aggregates(rs)
	}
	if !m.follows(rs) || rs.follow.over {
		return true
	}
	return m.elect(rs.number + coordinator.Round(m.run.Overlap))
}

// reads reports whether this member has to know all commitments to a round.
func (m *Machine) reads(rs *results) bool { return m.takes(rs) || m.elect(rs.number) }

// elect reports whether this member is elected in a round, once it is open.
func (m *Machine) elect(round coordinator.Round) bool {
	return m.seats.Elected(m.state, round, m.member.index)
}

// others returns peers besides the author that may hold the payloads of a round, others each time.
func (m *Machine) others(rs *results, tries uint8) (list []key.Public) {
	r, ok := m.attestedIn(rs.number)
	if !ok || !m.follows(rs) {
		return m.peers(rs.number+coordinator.Round(tries)*fromMax, fromMax)
	}
	if rs.attesters == nil {
		rs.attesters = r.Witnesses()
	}
	holders := rs.attesters
	switch {
	case m.aggregates(rs):
		holders = rs.sharing.groups[rs.sharing.own]
	case int(tries) < len(rs.others):
		return rs.others[tries]
	}
	for k := range min(fromMax, len(holders)) {
		i := holders[(int(m.member.index)+int(tries)*fromMax+k)%len(holders)]
		if i != m.member.index {
			list = append(list, m.state.Key(i))
		}
	}
	if !m.slices() && int(tries) == len(rs.others) {
		rs.others = append(rs.others, list)
	}
	return list
}

// update returns the update of round a's accepted set, which is final, or asks for what is due to
// get it. ok is false if the payloads are to be applied.
func (m *Machine) update(a coordinator.Round) (root wire.Hash, ok bool) {
	rs := m.results(a)
	f := &rs.follow
	switch {
	case !f.held.IsZero():
		return f.held, true
	case m.slices() && (f.over || m.elect(a+coordinator.Round(m.run.Overlap))):
		f.held = m.assemble(rs)
		f.assembled = !f.held.IsZero()
		return f.held, true
	case !m.slices() && m.takes(rs):
		return f.held, false
	}
	if f.sinceMs == 0 {
		m.beginFollowing(rs)
	}
	r, _ := m.state.At(a)
	patience := m.run.RoundTrainMs / followForPart
	if m.slices() {
		patience *= 2 // a witness may have to sum a slice first
	}
	if !f.fetching.IsZero() {
		patience *= 2
	}
	u, found := f.choose()
	late := m.reached(f.sinceMs + patience<<f.tries)
	switch {
	case late, f.split(), found && u.Bytes > min(m.cfg.UpdateMax, uint64(r.AcceptedCount())*uint64(m.cfg.PayloadMax)):
		f.over = m.affords(rs)
		if late && !f.over {
			*f, m.wakeAt = following{all: true, tries: min(f.tries+1, followTries)}, m.now
		}
		return wire.Hash{}, !f.over || m.slices()
	case !f.fetching.IsZero():
	case found:
		f.fetching = u.Root
		from := m.peers(a, fromMax)
		for _, n := range f.named {
			if n.Update == u {
				from = append([]key.Public{n.By}, from...)
			}
		}
		m.do(FetchUpdate{Round: a, Update: u, WithinMs: m.run.RoundTrainMs / followForPart, From: table.Distinct(from)})
	case m.due(&f.askedAt, max(reFollowMs, m.run.RoundTrainMs/followAskPart)<<f.tries):
		f.all = f.all || m.now >= f.sinceMs+m.run.RoundTrainMs/followAllPart
		to := slices.DeleteFunc(slices.Clone(f.asked()), func(k key.Public) bool {
			return slices.ContainsFunc(f.named, func(n UpdateNamed) bool { return n.By == k })
		})
		if len(to) > 0 {
			m.do(AskUpdate{Round: a, To: to})
		}
	}
	return wire.Hash{}, true
}

// affords reports whether this member may fetch the payloads of a round that it does not follow in
// time. In a large run they weigh more than the model: if thousands took them because a few
// witnesses were late, nobody would get them. These go on asking, and heal in the end. Those who
// have to report need the payloads.
func (m *Machine) affords(rs *results) bool {
	if m.slices() {
		return true // all slices are what an update is
	}
	const weightBits = 32 // an update has one or more for each weight
	return m.elect(m.state.Round()) || uint64(rs.Count)*uint64(m.cfg.PayloadMax) <= weightBits*m.cfg.Update
}

// beginFollowing draws the order in which the witnesses are asked that reported on the round.
func (m *Machine) beginFollowing(rs *results) {
	f := &rs.follow
	f.sinceMs = max(m.now, 1)
	r, ok := m.attestedIn(rs.number)
	if !ok {
		return
	}
	elected := r.Witnesses()
	honest := slices.DeleteFunc(elected, func(i coordinator.Member) bool { return m.shuns(m.state.Key(i)) })
	f.quorum = int(committee.Quorum(uint32(len(honest))))
	for _, report := range r.Reports() {
		if k := m.state.Key(report.Member); k != m.cfg.Self && !m.shuns(k) {
			f.order = append(f.order, k)
		}
	}
	seed := r.Seed()
	random := prng.New(wire.Sum("entrain/follow", seed[:], m.cfg.Self[:]), "witnesses")
	random.Shuffle(len(f.order), func(i, k int) { f.order[i], f.order[k] = f.order[k], f.order[i] })
}

// asked returns the witnesses that are asked now.
func (f *following) asked() []key.Public {
	if f.all {
		return f.order
	}
	return f.order[:min(followFirst, len(f.order))]
}

// choose returns the update to fetch, if the answers suffice.
func (f *following) choose() (u Update, ok bool) {
	u, votes := f.most()
	return u, votes >= f.quorum || !f.all && votes > 0 && votes == len(f.asked())
}

// split reports whether no update can come to be named by enough witnesses.
func (f *following) split() bool {
	_, votes := f.most()
	return f.fetching.IsZero() && votes+len(f.order)-len(f.named) < f.quorum && (f.all || len(f.order) == 0)
}

func (f *following) most() (u Update, votes int) {
	return table.Most(f.named, func(n UpdateNamed) Update { return n.Update })
}

// updateNamed takes a witness's answer. If it differs from the others, all witnesses are asked.
func (m *Machine) updateNamed(ev UpdateNamed) {
	rs := m.find(ev.Round)
	if rs == nil {
		return
	}
	f := &rs.follow
	if !slices.Contains(f.asked(), ev.By) || slices.ContainsFunc(f.named, func(n UpdateNamed) bool { return n.By == ev.By }) {
		return
	}
	f.named = append(f.named, ev)
	if !f.all && f.named[0].Update != ev.Update {
		f.all, f.askedAt = true, 0
	}
}

// updateFetched takes the outcome of a FetchUpdate. If it failed, those that named the update do
// not count any more.
func (m *Machine) updateFetched(ev UpdateFetched) {
	rs := m.find(ev.Round)
	if rs == nil || rs.follow.fetching != ev.Root {
		return
	}
	f := &rs.follow
	f.fetching = wire.Hash{}
	if ev.OK {
		f.held = ev.Root
		return
	}
	f.named = slices.DeleteFunc(f.named, func(n UpdateNamed) bool {
		if n.Root != ev.Root {
			return false
		}
		if ev.Refused {
			m.shun(n.By)
		}
		f.order = slices.DeleteFunc(f.order, func(k key.Public) bool { return k == n.By })
		return true
	})
	f.all, f.askedAt = true, 0
}

// shuns reports whether a member is not asked, because it lied not long ago.
func (m *Machine) shuns(k key.Public) bool { return m.state.Round() < m.shunned[k] }

func (m *Machine) shun(k key.Public) {
	if m.shuns(k) {
		return
	}
	if m.shunned == nil {
		m.shunned = map[key.Public]coordinator.Round{}
	}
	m.shunned[k] = m.state.Round() + shunRounds
	m.do(Note{"not asked for updates for a while, because it named a wrong one: " + k.String()})
}

// vouches reports whether the parameters follow from the agreed ones by payloads that this member
// holds. If not, it asks for what is due to find out.
func (m *Machine) vouches() bool {
	_, agreed := m.state.Params()
	all := m.model.doubted <= agreed
	for _, rs := range m.rounds {
		f := &rs.follow
		if !f.unchecked || f.applied <= agreed {
			continue
		}
		all = false
		if f.making {
			continue
		}
		if m.slices() {
			if root := m.assemble(rs); !root.IsZero() {
				m.compareUpdate(rs, root)
			}
			continue
		}
		m.fetchOpen(rs)
		if payloads, complete := m.accepted(rs.number); complete {
			f.making = true
			m.do(MakeUpdate{Round: rs.number, Payloads: payloads})
		}
	}
	return all
}

// updateMade compares an update that was applied with the one that the payloads make. If they
// differ, this member goes back to the agreed parameters and applies the payloads.
func (m *Machine) updateMade(ev UpdateMade) {
	rs := m.find(ev.Round)
	switch {
	case rs == nil || ev.Root.IsZero(): // it would fail again
	case m.slices() && rs.sharing != nil:
		rs.sharing.made = ev.Root
	case rs.follow.making:
		m.compareUpdate(rs, ev.Root)
	}
}

// compareUpdate does so with the root of the right update.
func (m *Machine) compareUpdate(rs *results, right wire.Hash) {
	f := &rs.follow
	switch right {
	case f.used:
		f.unchecked, f.making = false, false
	default:
		m.do(Note{fmt.Sprintf("the update applied for round %d is not that of its results: going back to the agreed parameters", rs.number)})
		m.judgeNamed(f, false)
		_, agreed := m.state.Params()
		for _, other := range m.rounds {
			if other == rs || other.follow.applied > agreed {
				other.follow = following{over: true}
			}
		}
		m.model.known, m.wakeAt = false, m.now // at once: what comes first decides again
	}
}

// judgeUpdates finds out who named wrong updates, once the run has agreed on the parameters that
// they were to make.
func (m *Machine) judgeUpdates() {
	agreed, round := m.state.Params()
	own, known := m.model.at(round)
	if !known {
		return
	}
	for _, rs := range m.rounds {
		f := &rs.follow
		if f.applied == round && round > 0 { // 0: it was not applied yet, and nothing agreed on
			m.judgeNamed(f, own == agreed)
		}
		if own != agreed {
			f.applied = 0 // what was made of wrong parameters tells nothing
		}
	}
}

// judgeNamed shuns those that named a wrong update. right is true if the one that was applied was
// right.
func (m *Machine) judgeNamed(f *following, right bool) {
	for _, n := range f.named {
		if (n.Root == f.used) != right {
			m.shun(n.By)
		}
	}
	f.applied, f.named = 0, nil
}
