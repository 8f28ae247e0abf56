package dispute

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// dispute is a view of a place in the table of disputes.
type dispute struct {
	s Cases
	b record.Dispute
}

func (s Cases) dispute(k uint32) dispute {
	return dispute{s: s, b: s.Buffer.Dispute(k)}
}

// disputeOf returns the open dispute of that number.
func (s Cases) disputeOf(id uint32) (dispute, bool) {
	for k := range uint32(record.DisputesMax) {
		if d := s.dispute(k); !d.free() && d.b.ID() == id {
			return d, true
		}
	}
	return dispute{}, false
}

func (d dispute) free() bool             { return d.b.Check().Round() == 0 }
func (d dispute) accused() record.Member { return d.b.Check().Member() }
func (d dispute) stage() Stage           { return Stage(d.b.Stage()) }
func (d dispute) level() Level           { return Level(d.b.Level()) }
func (d dispute) deadline() uint64       { return d.b.DeadlineMs() }

func (d dispute) commitment() Commitment {
	r := wire.NewReader(d.b.Commitment())
	return readCommitment(&r)
}

// subject returns the dispute as the referee sees it.
func (d dispute) subject() Case {
	return Case{Commitment: d.commitment(), Step: d.b.Check().Step(), Sequences: d.b.Check().Sequences()}
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

func (d dispute) tie(p uint32) TieVote {
	b := d.b.Tie(p)
	return TieVote{Member: b.Member(), Vote: Vote(b.Vote()), Trace: b.Trace()}
}

// blind returns the root of a trace as member i names it before others may know it.
func (s Cases) blind(i record.Member, root wire.Hash) wire.Hash {
	return Blind(s.Place(i).Key(), root)
}

func (d dispute) putTie(p uint32, v TieVote) {
	b := d.b.Tie(p)
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

// freeDispute returns a free place in the table of disputes. Verdicts of Unserved, which cost
// little if they are false, take half of the places at most, so that they keep no accusation out.
func (s Cases) freeDispute(unserved bool) (found dispute, ok bool) {
	n := 0
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		switch {
		case !d.free() && d.b.Unserved():
			n++
		case d.free() && !ok:
			found, ok = d, true
		}
	}
	return found, ok && !(unserved && n >= record.DisputesMax/2)
}

// open makes the free place d a dispute about the check in place k. Its verifier is the accuser.
func (d dispute) open(env Env, k uint32) {
	s := d.s
	b := s.Check(k)
	b.SetDisputed(true)
	copy(d.b, b)
	verifier := b.Verifier()
	id := s.h().Disputes() + 1
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

// drawTies draws up to three tie-breakers by the block's chance: from the active members or,
// between epochs, from the present members that joined before the check's epoch. Without any the
// dispute continues.
func (d dispute) drawTies(env Env) {
	s := d.s
	from := make([]record.Member, 0, s.h().Count())
	for i := range s.h().Count() {
		m := s.Place(i)
		if i == d.accused() || i == d.b.Accuser() {
			continue
		}
		if m.Status() == record.StatusActive || m.Present() && !s.h().InEpoch() && m.JoinedEpoch() < d.b.Check().Epoch() {
			from = append(from, i)
		}
	}
	from = s.KeepUp(from, d.accused())
	n := uint32(len(from))
	id := s.h().ID()
	seed := wire.Sum("entrain/tiebreakers", env.Seed[:], id[:], wire.AppendU32(nil, d.b.ID()))
	d.b.SetTiesLen(uint8(min(n, record.TiesMax)))
	for p, i := range committee.Seat(seed, committee.Verifiers, from, d.ties()) {
		d.putTie(uint32(p), TieVote{Member: i})
	}
	if n == 0 {
		d.countVotes(env, wire.Hash{})
	}
}

// TieBreak takes the vote of a tie-breaker.
func (s Cases) TieBreak(env Env, id uint32, vote Vote, trace wire.Hash) record.Error {
	d, i, e := s.party(env, id, StageTieBreaking)
	if e != record.OK {
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
		return record.ErrParty
	}
	if d.tie(at).Vote != 0 {
		return record.ErrDuplicate
	}
	computed := vote == VoteRight || vote == VoteWrong
	switch {
	case !computed && vote != VoteUnserved, !computed && !trace.IsZero():
		return record.ErrVote
	case computed && trace.IsZero() && !d.b.Unserved():
		return record.ErrVote
	}
	d.putTie(at, TieVote{Member: i, Vote: vote, Trace: trace})
	if all {
		d.countVotes(env, env.Proof)
	}
	return record.OK
}

// party returns the dispute if it is in this stage, and the sender's place.
func (s Cases) party(env Env, id uint32, stage Stage) (d dispute, i record.Member, e record.Error) {
	i, ok := s.Find(env.Sender)
	switch {
	case !ok:
		return d, 0, record.ErrNotMember
	case s.Place(i).Ejected():
		return d, 0, record.ErrEjected
	}
	d, ok = s.disputeOf(id)
	switch {
	case !ok:
		return d, 0, record.ErrDispute
	case d.stage() != stage:
		return d, 0, record.ErrStage
	case env.NowMs >= d.deadline():
		return d, 0, record.ErrLate
	}
	return d, i, record.OK
}

// countVotes ends the tie-breaking. last is the hash of the last vote, zero if the time was over.
func (d dispute) countVotes(env Env, last wire.Hash) {
	if !d.b.Unserved() {
		if d.b.Accuser() == NoMember && !d.replaceAccuser(env) {
			d.close()
		} else if d.stage() == StageTieBreaking {
			d.enter(env, StageDefending)
		}
		return
	}
	cast, unserved, served := uint32(0), uint32(0), record.Member(NoMember)
	wrong := false
	for p := range d.ties() {
		v := d.tie(p)
		usable := !d.s.Place(v.Member).Ejected()
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
		s.Place(d.b.Check().Verifier()).SetSkipped(0)
		d.close()
		s.strike(env, accused, round, last)
	case served != NoMember:
		d.reassign(env, served)
	default:
		d.close()
	}
}

// reassign gives the check to a tie-breaker that was served. The verifier has skipped a check;
// otherwise it could use Unserved to avoid work.
func (d dispute) reassign(env Env, verifier record.Member) {
	if first := d.b.Check().Verifier(); d.s.Place(first).Present() {
		d.s.skip(first, env)
	}
	if k, ok := d.s.findCheck(d.b.Check().Round(), d.accused()); ok {
		b := d.s.Check(k)
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
		clear(d.s.Check(k))
	}
	clear(d.b)
}

// replaceAccuser puts a tie-breaker that voted VoteWrong, with its own trace, in the accuser's
// place, and starts the descent over. It returns false if there is none.
func (d dispute) replaceAccuser(env Env) bool {
	for p := range d.ties() {
		v := d.tie(p)
		if v.Vote != VoteWrong || v.Member == d.b.Accuser() || d.s.Place(v.Member).Ejected() {
			continue
		}
		if d.b.Defended() && v.Trace == d.s.blind(v.Member, d.b.Trace(Accused)) {
			continue // its vote contradicts its trace
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

// convictAccused decides the dispute against the accused. The accuser and the tie-breakers that
// voted with it are paid; those that voted against what is proven come under doubt.
func (d dispute) convictAccused(env Env, offence Offence, proof wire.Hash, proven bool) {
	s, c := d.s, d.copy()
	d.close()
	s.payAccusation(c, proven)
	s.Convict(env, Charge{Member: c.Accused, Offence: offence, Round: c.Round, By: c.Accuser, Dispute: c.ID, Proof: proof})
}

// payAccusation pays for the recomputing in a dispute that the accused has lost, or cannot go on
// with.
func (s Cases) payAccusation(c Dispute, proven bool) {
	s.payVotes(c, VoteWrong, proven)
	if c.Accuser != NoMember && !c.Unserved {
		s.PayVerifier(c.Accuser, c.Sequences)
	}
}

// convictAccuser takes the accuser out of the dispute. A tie-breaker that voted VoteWrong with
// a different trace takes its place, since the accuser may have lost on purpose.
func (d dispute) convictAccuser(env Env, offence Offence, proof wire.Hash, proven bool) {
	s, c := d.s, d.copy()
	if proven {
		for p := range d.ties() {
			if v := d.tie(p); v.Vote == VoteWrong && v.Trace == s.blind(v.Member, c.Traces[Accuser]) {
				s.Place(v.Member).SetDoubt(DoubtMax)
				d.putTie(p, TieVote{Member: v.Member})
			}
		}
	}
	by := record.Member(NoMember) // as long as the accused is not free
	if !d.replaceAccuser(env) {
		c, by = d.copy(), c.Accused
		d.close()
		s.payVotes(c, VoteRight, proven)
		if proven {
			s.clearDoubt(c.Accused)
		}
	}
	s.Convict(env, Charge{Member: c.Accuser, Offence: offence, Round: c.Round, By: by, Dispute: c.ID, Proof: proof})
}

// payVotes pays the tie-breakers that voted as the dispute ended and named the trace of the side
// that won, which nobody could copy. An accuser's trace that was never opened proves no vote. If
// the end is proven, those that voted otherwise come under doubt.
func (s Cases) payVotes(c Dispute, right Vote, proven bool) {
	won, known := c.Traces[Accused], c.Defended
	if right == VoteWrong {
		won, known = c.Traces[Accuser], c.opened()
	}
	for _, v := range c.TieBreakers {
		switch {
		case v.Vote == right && v.Member != c.Accuser:
			if known && v.Trace == s.blind(v.Member, won) {
				s.PayVerifier(v.Member, c.Sequences)
			}
		case proven && v.Vote != right && (v.Vote == VoteRight || v.Vote == VoteWrong):
			s.Place(v.Member).SetDoubt(DoubtMax)
		}
	}
}

// silentAccused decides against an accused that made no move in time. If tie-breakers voted and
// none found its result wrong, it is only known to be away, as an honest member may be when
// somebody accuses it for the reward: it gets a strike, as for not serving, and the accuser
// nothing.
func (d dispute) silentAccused(env Env) {
	cast, wrong := 0, false
	for p := range d.ties() {
		vote := d.tie(p).Vote
		wrong = wrong || vote == VoteWrong
		if vote != 0 {
			cast++
		}
	}
	if wrong || cast < strikeVotes {
		d.convictAccused(env, Silence, wire.Hash{}, false)
		return
	}
	s, accused, round := d.s, d.accused(), d.b.Check().Round()
	d.close()
	s.strike(env, accused, round, wire.Hash{})
}

// ExpireDisputes decides the disputes whose deadline has passed: silence loses.
func (s Cases) ExpireDisputes(env Env) {
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() || env.NowMs < d.deadline() {
			continue
		}
		switch d.stage() {
		case StageTieBreaking:
			d.countVotes(env, wire.Hash{})
		case StageDefending:
			d.silentAccused(env)
		case StageDescending:
			if d.b.Revealed(Accuser) {
				d.silentAccused(env)
			} else {
				d.convictAccuser(env, Silence, wire.Hash{}, false)
			}
		case StageEvidence:
			d.convictAccuser(env, Silence, wire.Hash{}, false)
		}
	}
}
