package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// dispute is a view of a place in the table of disputes.
type dispute struct {
	s State
	b record.Dispute
}

func (s State) dispute(k uint32) dispute {
	return dispute{s: s, b: s.buffer().Dispute(k)}
}

// disputeOf returns the open dispute of that number.
func (s State) disputeOf(id uint32) (dispute, bool) {
	for k := range uint32(record.DisputesMax) {
		if d := s.dispute(k); !d.free() && d.b.ID() == id {
			return d, true
		}
	}
	return dispute{}, false
}

func (d dispute) free() bool       { return d.b.Check().Round() == 0 }
func (d dispute) accused() uint32  { return d.b.Check().Member() }
func (d dispute) stage() Stage     { return Stage(d.b.Stage()) }
func (d dispute) level() Level     { return Level(d.b.Level()) }
func (d dispute) deadline() uint64 { return d.b.DeadlineMs() }

func (d dispute) commitment() Commitment {
	r := wire.NewReader(d.b.Commitment())
	return ReadCommitment(&r)
}

func (d dispute) children() (list [bisect.Fan]wire.Hash) {
	for i := range list {
		list[i] = d.b.Child(uint32(i))
	}
	return list
}

func (d dispute) putChildren(list [bisect.Fan]wire.Hash) {
	for i, h := range list {
		d.b.SetChild(uint32(i), h)
	}
}

func (d dispute) ties() uint32 { return min(uint32(d.b.TiesLen()), record.TiesMax) }

func (d dispute) tie(i uint32) TieVote {
	b := d.b.Tie(i)
	return TieVote{Member: b.Member(), Vote: Vote(b.Vote()), Trace: b.Trace()}
}

func (d dispute) putTie(i uint32, v TieVote) {
	b := d.b.Tie(i)
	b.SetMember(v.Member)
	b.SetVote(uint8(v.Vote))
	b.SetTrace(v.Trace)
}

func (d dispute) copy() Dispute {
	c := Dispute{
		ID: d.b.ID(), Check: readCheck(d.b.Check()), Accused: d.accused(), Accuser: d.b.Accuser(), Unserved: d.b.Unserved(),
		Commitment: d.commitment(), Stage: d.stage(), DeadlineMs: d.deadline(), Defended: d.b.Defended(),
		Traces: [2]wire.Hash{d.b.Trace(Accused), d.b.Trace(Accuser)}, Level: d.level(),
		Op: d.b.Op(), Tile: d.b.Tile(), Slice: d.b.Slice(),
		Depth: d.b.Depth(), Index: d.b.Index(), Nodes: [2]wire.Hash{d.b.Node(Accused), d.b.Node(Accuser)},
		Revealed: [2]bool{d.b.Revealed(Accused), d.b.Revealed(Accuser)}, Children: d.children(),
	}
	for i := range d.ties() {
		c.TieBreakers = append(c.TieBreakers, d.tie(i))
	}
	return c
}

// freeDispute returns a free place in the table of disputes.
func (s State) freeDispute() (dispute, bool) {
	for k := range uint32(record.DisputesMax) {
		if d := s.dispute(k); d.free() {
			return d, true
		}
	}
	return dispute{}, false
}

// open makes the free place d a dispute about the check in place k, whose verifier accuses.
func (d dispute) open(env Env, k uint32) {
	s := d.s
	b := s.check(k)
	b.SetDisputed(true)
	copy(d.b, b)
	verifier := b.Verifier()
	id := s.DisputesTotal() + 1
	s.h().SetDisputes(id)
	d.b.SetID(id)
	d.b.SetAccuser(verifier)
	d.enter(env, StageTieBreaking)
}

// enter begins a stage, or the next moves of one.
func (d dispute) enter(env Env, stage Stage) {
	length := d.s.h().DisputeMs()
	if stage == StageTieBreaking {
		length = d.s.h().VerifyMs()
	}
	d.b.SetStage(uint8(stage))
	d.b.SetDeadlineMs(env.NowMs + length)
}

// drawTies draws the tie-breakers by the chance of the block: up to three of those who are active, or, between epochs, of those
// who are present and were so in the last one. If there is nobody the dispute goes on without.
func (d dispute) drawTies(env Env) {
	s := d.s
	var from []uint32
	for i := range s.Count() {
		st := s.status(i)
		if i == d.accused() || i == d.b.Accuser() {
			continue
		}
		if st == StatusActive || st.Present() && !s.inEpoch() && s.place(i).JoinedEpoch() < d.b.Check().Epoch() {
			from = append(from, i)
		}
	}
	from = s.keepUp(from, d.accused())
	n := uint32(len(from))
	id := s.ID()
	seed := wire.Sum("entrain/tiebreakers", env.Seed[:], id[:], wire.AppendU32(nil, d.b.ID()))
	d.b.SetTiesLen(uint8(min(n, record.TiesMax)))
	for p := range d.ties() {
		d.putTie(p, TieVote{Member: from[committee.Member(seed, committee.Verifiers, n, p)]})
	}
	if n == 0 {
		d.countVotes(env, nil)
	}
}

func (s State) tieBreak(env Env, m TieBreak) Error {
	d, i, e := s.party(env, m.Dispute, StageTieBreaking)
	if e != OK {
		return e
	}
	at, all := uint32(record.TiesMax), true
	for p := range d.ties() {
		v := d.tie(p)
		if v.Member == i {
			at = p
		} else if v.Vote == 0 {
			all = false
		}
	}
	if at == record.TiesMax {
		return ErrParty
	}
	if d.tie(at).Vote != 0 {
		return ErrDuplicate
	}
	computed := m.Vote == VoteRight || m.Vote == VoteWrong
	switch {
	case !computed && m.Vote != VoteUnserved, !computed && !m.Trace.IsZero():
		return ErrVote
	case computed && m.Trace.IsZero() && !d.b.Unserved():
		return ErrVote
	}
	d.putTie(at, TieVote{Member: i, Vote: m.Vote, Trace: m.Trace})
	if all {
		d.countVotes(env, m)
	}
	return OK
}

// party returns a dispute in a stage, and the sender.
func (s State) party(env Env, id uint32, stage Stage) (d dispute, i uint32, e Error) {
	i, ok := s.Find(env.Sender)
	switch {
	case !ok:
		return d, 0, ErrNotMember
	case s.status(i) == StatusEjected:
		return d, 0, ErrEjected
	}
	d, ok = s.disputeOf(id)
	switch {
	case !ok:
		return d, 0, ErrDispute
	case d.stage() != stage:
		return d, 0, ErrStage
	case env.NowMs >= d.deadline():
		return d, 0, ErrLate
	}
	return d, i, OK
}

// countVotes ends the tie-breaking. last is the vote that came last, nil if the time was over.
func (d dispute) countVotes(env Env, last Message) {
	if !d.b.Unserved() {
		if d.b.Accuser() == NoMember && !d.replaceAccuser(env) {
			d.close()
		} else if d.stage() == StageTieBreaking {
			d.enter(env, StageDefending)
		}
		return
	}
	cast, unserved, served := uint32(0), uint32(0), uint32(NoMember)
	wrong := false
	for p := range d.ties() {
		v := d.tie(p)
		usable := d.s.status(v.Member) != StatusEjected
		if v.Vote != 0 {
			cast++
		}
		switch {
		case v.Vote == VoteUnserved:
			unserved++
		case v.Vote == VoteWrong && usable && !wrong:
			served, wrong = v.Member, true
		case v.Vote == VoteRight && usable && served == NoMember:
			served = v.Member
		}
	}
	s, accused, round := d.s, d.accused(), d.b.Check().Round()
	switch {
	case cast > 0 && unserved == cast && cast >= min(d.ties(), strikeVotes):
		s.place(d.b.Check().Verifier()).SetSkipped(0)
		d.close()
		s.strike(env, accused, round, last)
	case served != NoMember:
		d.reassign(env, served)
	default:
		d.close()
	}
}

// reassign gives the check back, to a tie-breaker that was served and so can make it. To the verifier it counts as a check
// skipped, or else to say Unserved would be a way to do nothing.
func (d dispute) reassign(env Env, verifier uint32) {
	if first := d.b.Check().Verifier(); d.s.status(first).Present() {
		d.s.skip(first, env)
	}
	if k, ok := d.s.findCheck(d.b.Check().Round(), d.accused()); ok {
		b := d.s.check(k)
		b.SetDisputed(false)
		b.SetReassigned(true)
		b.SetVerifier(verifier)
		b.SetDeadlineMs(env.NowMs + d.s.h().VerifyMs())
	}
	clear(d.b)
}

// close ends a dispute and the check it is about.
func (d dispute) close() {
	if k, ok := d.s.findCheck(d.b.Check().Round(), d.accused()); ok {
		clear(d.s.check(k))
	}
	clear(d.b)
}

// replaceAccuser lets a tie-breaker that voted VoteWrong, with a trace of its own, take the accuser's place, and the descent
// begins anew. It is false if there is none.
func (d dispute) replaceAccuser(env Env) bool {
	for p := range d.ties() {
		v := d.tie(p)
		if v.Vote != VoteWrong || v.Member == d.b.Accuser() || d.s.status(v.Member) == StatusEjected {
			continue
		}
		if d.b.Defended() && v.Trace == d.b.Trace(Accused) {
			continue // it contradicts itself
		}
		d.b.SetAccuser(v.Member)
		d.b.SetTrace(Accuser, v.Trace)
		if !d.b.Defended() {
			d.enter(env, StageDefending)
			return true
		}
		if env.Referee != nil {
			d.descend(env)
			return true
		}
	}
	return false
}

// convictAccused ends the dispute for the accused. The accuser and those who voted with it are paid for their work; those who
// voted against what is proven come under doubt.
func (d dispute) convictAccused(env Env, offence Offence, proof Message, proven bool) {
	s, c := d.s, d.copy()
	d.close()
	s.payVotes(c, VoteWrong, proven)
	s.convict(env, charge{member: c.Accused, offence: offence, round: c.Round, by: c.Accuser, proof: proof})
	if c.Accuser != NoMember {
		s.payVerifier(c.Accuser, c.Sequences)
	}
}

// convictAccuser takes the accuser out of the dispute. If a tie-breaker found the same result wrong, by another trace than the
// one that was disproved, it goes on in the accuser's place: the accuser may have meant to lose.
func (d dispute) convictAccuser(env Env, offence Offence, proof Message, proven bool) {
	s, c := d.s, d.copy()
	if proven {
		for p := range d.ties() {
			if v := d.tie(p); v.Vote == VoteWrong && v.Trace == c.Traces[Accuser] {
				s.place(v.Member).SetDoubt(doubtMax)
				d.putTie(p, TieVote{Member: v.Member})
			}
		}
	}
	by := uint32(NoMember) // as long as the accused is not free of it
	if !d.replaceAccuser(env) {
		c, by = d.copy(), c.Accused
		d.close()
		s.payVotes(c, VoteRight, proven)
		if proven {
			s.clearDoubt(c.Accused)
		}
	}
	s.convict(env, charge{member: c.Accuser, offence: offence, round: c.Round, by: by, proof: proof})
}

// payVotes pays the tie-breakers of a dispute that is over, who voted as it ended; the others come under doubt if that is proven.
func (s State) payVotes(c Dispute, right Vote, proven bool) {
	for _, v := range c.TieBreakers {
		switch {
		case v.Vote == right && v.Member != c.Accuser:
			s.payVerifier(v.Member, c.Sequences)
		case proven && v.Vote != right && (v.Vote == VoteRight || v.Vote == VoteWrong):
			s.place(v.Member).SetDoubt(doubtMax)
		}
	}
}

// expireDisputes ends what is late: silence loses.
func (s State) expireDisputes(env Env) {
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() || env.NowMs < d.deadline() {
			continue
		}
		switch d.stage() {
		case StageTieBreaking:
			d.countVotes(env, nil)
		case StageDefending:
			d.convictAccused(env, Silence, nil, false)
		case StageDescending:
			if d.b.Revealed(Accuser) {
				d.convictAccused(env, Silence, nil, false)
			} else {
				d.convictAccuser(env, Silence, nil, false)
			}
		case StageEvidence:
			d.convictAccuser(env, Silence, nil, false)
		}
	}
}
