package client

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/client/underway"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

const (
	// keepRounds is the number of rounds whose results are kept: the coordinator's ring holds four,
	// and one ahead may come early.
	keepRounds = 5
	// candidatesMax bounds the commitments kept of one member in one round. An honest member makes
	// one; a second is evidence, more are noise.
	candidatesMax = 3
	// fetchesMax bounds the payload fetches under way, not counting those that have taken slowMs or
	// more: members that serve nothing would hold up all others. With these, slowFactor times as many
	// may be under way. In a large run one in fetchParts members may be fetched from at once, so that
	// a round's payloads come in as many round trips however many they are, but not more than
	// fetchBytes: what shares a link must not take longer than a fetch may.
	fetchesMax = 16
	fetchParts = 16
	fetchBytes = 4 << 20
	slowFactor = 8
	slowMs     = 2000
	// fromMax bounds the peers that a fetch names besides the author. If all were named, a round's
	// fetches would cost the square of the members. A fetch that fails is tried again with the next
	// ones.
	fromMax = 8
	// askMax bounds the members asked after in one request, and bulkMax where members follow: who is
	// elected then knows hardly any commitment of the rounds before. It asks bulkAsks members at once.
	askMax   = 256
	bulkMax  = 1024
	bulkAsks = 8
)

// results holds the results of one round.
type results struct {
	number  coordinator.Round
	members coordinator.Member // places in the table of members
	*Shares                    // nil until the state has the round
	// witnesses is the number of those elected in the round; the next one has about as many.
	witnesses int
	attesters []coordinator.Member // those elected in the round that attests it, once it is open
	others    [][]key.Public       // by the number of the try
	follow    following
	known     table.Table[coordinator.Member, candidate]
	open      []place // of candidates whose payload is to be fetched, in the order in which they came
	parked    []place // of those that could not be when they were looked at last
	askedAt   uint64
	asks      uint32
	missing   []coordinator.Member // of whom no commitment that counts was known, in order
	missingAt uint64               // in this turn of the machine: within one, none is added
	passes    uint32               // how often all that were wanted have been asked after
	askFrom   coordinator.Member   // the next request begins here: the last one had no room for more
	// The members before these were found to lack nothing: see lacks.
	unknown, unheld   coordinator.Member
	blindMs, refillAt uint64     // when filters were found to lack, and were to be made again
	refills           uint8      // how often that was tried
	accepting         *accepting // nil until the accepted set is wanted
	sharing           *sharing   // nil until slices are drawn
}

// place locates a candidate: known.Of(member)[k].
type place struct {
	member coordinator.Member
	k      uint8
}

// candidate is one commitment, and how far its payload has come.
type candidate struct {
	commitment *dispute.Commitment // of signed
	signed     *dispute.Signed
	id         wire.Hash
	fetching   *underway.Request // nil: it is not
	triedAt    uint64
	tries      uint8
	held       bool // the payload is there and decodes, or the range of it that this member sums
	spread     bool // all ranges of it were found to be held by enough members
	refused    bool // never to be held
	queued     bool // it is in open or parked
}

func (m *Machine) find(number coordinator.Round) *results {
	if found := m.found[number%coordinator.Round(len(m.found))]; found != nil && found.number == number {
		return found
	}
	for _, r := range m.rounds {
		if r.number == number {
			m.found[number%coordinator.Round(len(m.found))] = r
			return r
		}
	}
	return nil
}

// enterRound makes room for the results of a round and drops those that can no longer matter.
func (m *Machine) enterRound(now coordinator.Round) {
	for i := 0; i < len(m.rounds); {
		if m.rounds[i].number+keepRounds <= now {
			if f := &m.rounds[i].follow; f.unchecked {
				m.model.doubted = max(m.model.doubted, f.applied)
			}
			m.abandon(m.rounds[i])
			m.found[m.rounds[i].number%coordinator.Round(len(m.found))] = nil
			m.rounds = append(m.rounds[:i], m.rounds[i+1:]...)
			continue
		}
		i++
	}
	if now > keepRounds {
		m.do(Forget{Before: now - keepRounds + 1})
	}
	m.results(now)
}

// abandon has the fetches of a round that is dropped count no more: the end of one may be lost.
func (m *Machine) abandon(rs *results) {
	rs.known.Each(m.ended)
}

// results returns the record of a round. It makes the record if there is none, and fills it in if
// the state has the round.
func (m *Machine) results(number coordinator.Round) *results {
	rs := m.find(number)
	if rs == nil {
		rs = &results{number: number, members: coordinator.Member(m.state.Limits().Members)}
		m.rounds = append(m.rounds, rs)
	}
	if rs.Shares == nil {
		if r, ok := m.state.At(number); ok {
			rs.Shares, rs.witnesses = m.cfg.Common.Shares(r), len(r.Witnesses())
		}
	}
	return rs
}

// share returns the sequences that a member trains in a round.
func (m *Machine) share(r coordinator.RoundState, i coordinator.Member) []batch.Span {
	if rs := m.find(r.Number()); rs != nil && rs.Shares != nil {
		return rs.Of(i)
	}
	return r.Share(i)
}

// expects reports whether a member has a share in the round.
func (rs *results) expects(i coordinator.Member) bool {
	return rs.Shares != nil && int(i) < len(rs.Hashes) && !rs.Hashes[i].IsZero()
}

// received keeps a commitment that can matter. Its author is judged when the round is known.
func (m *Machine) received(ev CommitmentReceived) {
	c := &ev.Signed.Commitment
	if !m.hasState || c.Run != m.state.ID() || c.PayloadBytes > m.cfg.PayloadMax || c.Member >= coordinator.Member(m.state.Limits().Members) {
		return
	}
	now := m.state.Round()
	if c.Round > now+1 || c.Round+keepRounds <= now {
		return
	}
	if c.Member >= m.state.Count() || m.state.Key(c.Member) != ev.Signer {
		return
	}
	id := ev.ID
	if !m.exchange.admits(c, id) {
		return
	}
	rs := m.results(c.Round)
	if ev.Signer == m.cfg.Self {
		m.recognize(rs, ev.Signed, id)
	}
	list := rs.known.Of(c.Member)
	for i := range list {
		if list[i].id == id {
			return
		}
	}
	if len(list) >= candidatesMax {
		return
	}
	if len(list) == 1 {
		m.do(Note{"two commitments of one member for one round: " + ev.Signer.String()})
		m.prove(*list[0].signed, *ev.Signed, ev.Signer)
	}
	rs.known.Set(c.Member, append(list, candidate{commitment: c, signed: ev.Signed, id: id, queued: true}), rs.members)
	rs.open = append(rs.open, place{c.Member, uint8(len(list))})
	rs.retest(c.Member)
	m.learned(c)
	if cs := m.caseOf[Share{Round: c.Round, Member: c.Member}]; cs != nil && !cs.known {
		m.unread = true
	}
	m.unretained = m.unretained || ev.Signer == m.cfg.Self
}

// retest says that a member's accepted result may be among those known now.
func (rs *results) retest(member coordinator.Member) {
	a := rs.accepting
	if a == nil || a.chosen[member] == nothing {
		return
	}
	if a.chosen[member] >= 0 && !slices.Contains(a.lacking, member) {
		a.lacking = append(a.lacking, member)
	}
	a.chosen[member] = untested
	a.renewed = append(a.renewed, member)
}

// replace takes the only result of a member that counts, or none.
func (m *Machine) replace(rs *results, member coordinator.Member, c ...candidate) {
	m.ended(rs.known.Of(member))
	rs.known.Set(member, c, rs.members)
	rs.retest(member)
}

// valid reports whether a commitment is for the share that its author was given, on the parameters
// that all started from, and from an optimizer state that its author may begin from.
func (m *Machine) valid(rs *results, c *candidate) bool {
	if m.slices() && c.commitment.PayloadBytes != m.cfg.PayloadMax {
		return false // ranges are the same bytes of all payloads
	}
	if c.refused || !rs.expects(c.commitment.Member) || c.commitment.Share != rs.Hashes[c.commitment.Member] {
		return false
	}
	r, ok := m.state.At(rs.number)
	if !ok || c.commitment.Epoch != r.Epoch() || !m.exchange.continues(r.Step(), c.commitment) {
		return false
	}
	if !m.exchange.admits(c.commitment, c.id) {
		return false
	}
	own, known := m.model.at(rs.number)
	return !known || own == c.commitment.Params
}

// best returns the candidate that this member vouches for: the one with the smallest ID among the
// valid ones; with payload set, only among those whose payload all can have.
func (m *Machine) best(rs *results, member coordinator.Member, payload bool) *candidate {
	var best *candidate
	for i := range rs.known.Of(member) {
		c := &rs.known.Of(member)[i]
		if m.valid(rs, c) && (!payload || m.there(rs, c)) && (best == nil || c.id.Compare(best.id) < 0) {
			best = c
		}
	}
	return best
}

// lacks reports whether a result of the round is missing that may still come: one that is not
// known, or with payload set, not held. It continues at *from, where it found the last one missing,
// so that asking at every event costs little.
func (m *Machine) lacks(rs *results, payload bool, from *coordinator.Member, awaited func(coordinator.Member) bool) bool {
	for range rs.members {
		if i := *from; rs.expects(i) && awaited(i) && m.best(rs, i, payload) == nil {
			return true
		}
		if *from++; *from == rs.members {
			*from = 0
		}
	}
	return false
}

// decideResults fetches payloads of known commitments and asks for commitments that are missing.
func (m *Machine) decideResults() {
	now := m.state.Round()
	lag := coordinator.Round(m.run.Overlap)
	for number := now - min(now-1, lag); number <= now; number++ {
		rs := m.results(number)
		r, ok := m.state.At(number)
		if !ok {
			continue
		}
		if m.takes(rs) {
			m.fetchOpen(rs)
		}
		if !m.reads(rs) {
			continue
		}
		if rs.missingAt != m.turns || len(rs.missing) > 0 {
			m.askMissing(rs, func() []coordinator.Member { return m.missing(rs, r) })
		}
	}
}

// missing returns the members of whose results no commitment is known that counts.
func (m *Machine) missing(rs *results, r coordinator.RoundState) []coordinator.Member {
	known := func(i coordinator.Member) bool {
		own := i == m.member.index && m.work.done < rs.number // it will be made here
		return own || !rs.expects(i) || !m.exchange.awaited(r, i) || m.best(rs, i, false) != nil
	}
	if rs.missingAt == m.turns {
		rs.missing = slices.DeleteFunc(rs.missing, known)
		return rs.missing
	}
	rs.missingAt, rs.missing = m.turns, rs.missing[:0]
	for i := range rs.members {
		if !known(i) {
			rs.missing = append(rs.missing, i)
		}
	}
	return rs.missing
}

// fetchOpen asks for payloads in the order in which their commitments came, at most fetchesMax at a
// time. It runs at every event, so it looks at each candidate once, and with the next tick or state
// again at those that it could not fetch or did not get.
func (m *Machine) fetchOpen(rs *results) {
	if m.reconsiders && len(rs.parked) > 0 {
		rs.open, rs.parked = append(rs.parked, rs.open...), nil
	}
	for len(rs.open) > 0 && !m.fetchesFull(rs, false) {
		o := rs.open[0]
		rs.open = rs.open[1:]
		if int(o.k) >= len(rs.known.Of(o.member)) {
			continue // replaced by this member's result
		}
		c := &rs.known.Of(o.member)[o.k]
		c.queued = false
		if c.held || c.refused || c.fetching != nil {
			continue
		}
		if !m.valid(rs, c) || c.tries > 0 && m.fetchesFull(rs, true) || !m.fetch(rs, c) {
			c.queued = true
			rs.parked = append(rs.parked, o)
		}
	}
}

// fetchesFull reports whether no more fetches should begin, of payloads that were tried or not.
func (m *Machine) fetchesFull(rs *results, tried bool) bool {
	m.fetches.Age(func(sinceMs uint64) bool { return m.reached(sinceMs + slowMs) })
	most, parts := fetchesMax, fetchParts
	if !m.bulk(rs, tried).IsZero() {
		parts = 1
	}
	if m.cfg.PayloadMax > 0 {
		most = max(most, min(int(m.state.Count())/parts, fetchBytes/int(m.cfg.PayloadMax)))
	}
	return m.fetches.Recent >= most || m.fetches.Count >= slowFactor*most
}

// ended notes that the fetches of candidates have ended.
func (m *Machine) ended(list []candidate) {
	for k := range list {
		if list[k].fetching != nil {
			m.fetches.End(list[k].fetching)
			list[k].fetching = nil
		}
	}
}

// fetch asks for a candidate's payload unless it is there, under way, or was tried just now.
func (m *Machine) fetch(rs *results, c *candidate) bool {
	if c.held || c.refused || c.fetching != nil {
		return false
	}
	if m.slices() && !m.aggregates(rs) {
		return false
	}
	seed, ok := m.exchange.seed(rs.number)
	if !ok || !m.due(&c.triedAt, m.exchange.patience(reFetchMs, uint32(c.tries))) {
		return false
	}
	f := FetchPayload{Round: rs.number, Member: c.commitment.Member, ID: c.id,
		Payload: c.commitment.Payload, PayloadBytes: c.commitment.PayloadBytes, Seed: seed,
		Author: m.state.Key(c.commitment.Member), From: m.others(rs, c.tries), Bulk: m.bulk(rs, c.tries > 0)}
	c.tries += 1 - c.tries>>7
	c.fetching = m.fetches.Begin(m.now)
	if m.aggregates(rs) {
		f.Slice, f.Slices = rs.sharing.own, len(rs.sharing.groups)
	}
	m.do(f)
	return true
}

// bulk returns a member to ask for many payloads of a round at once, zero if there is none: one of
// those that attested it, another for each asker. It could not send more than 64 MiB in time.
func (m *Machine) bulk(rs *results, tried bool) (holder key.Public) {
	if order := rs.follow.order; !tried && len(order) > 0 && !m.slices() && uint64(rs.Count)*uint64(m.cfg.PayloadMax) <= 64<<20 {
		holder = order[0]
	}
	return holder
}

// askMissing asks for the commitments of the wanted members, in order, each time after those named
// last, so that members which hide theirs take no room from the others. After a crash this member's
// may be among them.
func (m *Machine) askMissing(rs *results, wanted func() []coordinator.Member) {
	wait := m.exchange.patience(reAskMs, rs.passes)
	if rs.askedAt != 0 && !m.reached(rs.askedAt+wait) {
		return
	}
	most, bulk := askMax, m.follows(rs)
	switch {
	case bulk && rs.number < m.state.Round():
		most = bulkMax * bulkAsks
	case bulk:
		most = bulkMax
	}
	missing := wanted()
	if len(missing) == 0 {
		rs.askedAt = max(m.now, 1) // this looked at all members: not at every event
		return
	}
	to, ok := m.exchange.whom(rs)
	if !ok {
		return
	}
	from, _ := slices.BinarySearch(missing, rs.askFrom)
	of, next := slices.Concat(missing[from:], missing[:from]), coordinator.Member(0)
	if len(of) > most {
		next, of = of[most], of[:most]
	}
	if rs.askFrom = next; next == 0 {
		rs.passes++
	}
	var elected []key.Public
	if bulk {
		elected = m.elected(rs)
	}
	if m.slices() && rs.number < m.state.Round() && rs.asks%2 == 0 {
		rs.asks++ // authors know best, and else who was elected
		for _, i := range of {
			if k := m.state.Key(i); k != m.cfg.Self {
				m.do(AskCommitments{Round: rs.number, Of: []coordinator.Member{i}, To: k})
			}
		}
		return
	}
	if len(elected) == 0 {
		rs.asks++
		m.do(AskCommitments{Round: rs.number, Of: of, To: to})
		return
	}
	for part := range slices.Chunk(of, bulkMax) {
		m.do(AskCommitments{Round: rs.number, Of: part, To: elected[(rs.asks+uint32(m.member.index))%uint32(len(elected))]})
		rs.asks++
	}
}

func (m *Machine) fetched(ev PayloadFetched) {
	rs := m.find(ev.Round)
	if rs == nil {
		return
	}
	for k := range rs.known.Of(ev.Member) {
		c := &rs.known.Of(ev.Member)[k]
		if c.id != ev.ID {
			continue
		}
		m.ended(rs.known.Of(ev.Member)[k : k+1])
		c.held = c.held || ev.OK // a copy may have come meanwhile
		if rs.sharing != nil {
			rs.sharing.changed = true
		}
		c.refused = ev.Refused
		if !c.held && !c.refused && !c.queued {
			c.queued = true
			rs.parked = append(rs.parked, place{ev.Member, uint8(k)})
		}
		if ev.Refused {
			rs.missingAt = 0
			m.do(Note{"payload refused: not a valid update, from " + m.state.Member(ev.Member).Key.String()})
		}
	}
}

// keepOwn records this member's result.
func (m *Machine) keepOwn() {
	own := &dispute.Signed{Commitment: m.work.own}
	c := &own.Commitment
	rs := m.results(c.Round)
	_, later := m.exchange.(revealer) // then it is held once it is revealed
	m.replace(rs, c.Member, candidate{commitment: c, signed: own, id: c.ID(), held: !later})
	m.learned(c)
}
