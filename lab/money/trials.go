package money

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Checks and disputes. Their referee judges the two operations of package check.

// verifyMs and disputeMs are the times of runs with checks: those of several moves, after each of
// which the honest answer.
const (
	verifyMs  = 60_000
	disputeMs = 60_000
)

// traces are the ways to compute the result of a check, the true one first.
func traces(s coordinator.State, v dispute.Check) []check.Trace {
	return check.Traces(dispute.Case{Commitment: dispute.Commitment{
		Run: s.ID(), Epoch: v.Epoch, Round: v.Round, Member: v.Member, Share: v.Share, Params: v.Params,
	}})
}

// lies reports whether a member of the gang tells others of a wrong result: of two in three.
func (e *episode) lies(s coordinator.State, v dispute.Check) bool {
	id := s.ID()
	h := wire.Sum("entrain/lab/money/lies", id[:], wire.AppendU64(nil, uint64(v.Round)), wire.AppendU32(nil, uint32(v.Member)))
	return s.Key(v.Member) != e.member.Public() && h[0]%3 > 0
}

// author returns the key of a member; false if it is none of ours.
func (e *episode) author(s coordinator.State, i coordinator.Member) (key.Private, bool) {
	for _, k := range append([]key.Private{e.member}, e.keys...) {
		if s.Key(i) == k.Public() {
			return k, true
		}
	}
	return key.Private{}, false
}

// trial draws what one of the gang may say about a check, or do in a dispute. Members of the gang
// sign any result as their own, and the honest member only its true one.
func (e *episode) trial(random *prng.Source, run string) (by key.Private, m coordinator.Message, ok bool) {
	v, found := e.host.View(run)
	if !found {
		return by, nil, false
	}
	s := v.State
	n := func(n int) int { return int(random.Uint64n(uint64(n))) }
	if list := s.Checks(); len(list) > 0 && n(2) == 0 {
		c := list[n(len(list))]
		author, known := e.author(s, c.Member)
		if by, ok = e.author(s, c.Verifier); !ok || !known || by.Public() == e.member.Public() || c.Disputed {
			return by, nil, false
		}
		all := traces(s, c)
		theirs := all[0]
		if author.Public() != e.member.Public() {
			theirs = all[n(2)]
		}
		signed := theirs.Result.Sign(author)
		switch n(4) {
		case 0:
			return by, coordinator.Unserved{Round: c.Round, Member: c.Member}, true
		case 1:
			return by, coordinator.Pass{Round: c.Round, Member: c.Member, Commitment: signed, Gradient: check.Gradient(all[n(2)].Value)}, true
		}
		return by, coordinator.Accuse{Round: c.Round, Member: c.Member, Commitment: signed, Trace: dispute.Blind(by.Public(), all[n(len(all))].Root())}, true
	}
	list := s.Disputes()
	if len(list) == 0 {
		return by, nil, false
	}
	d := list[n(len(list))]
	t := traces(s, d.Check)[n(5)]
	who := d.Accused
	switch {
	case d.Stage == dispute.StageTieBreaking && len(d.TieBreakers) > 0:
		who = d.TieBreakers[n(len(d.TieBreakers))].Member
	case d.Accuser != dispute.NoMember && (d.Stage == dispute.StageEvidence || n(2) == 0):
		who = d.Accuser
	}
	if by, ok = e.author(s, who); !ok || by.Public() == e.member.Public() {
		return by, nil, false
	}
	switch {
	case d.Stage != dispute.StageTieBreaking && n(8) == 0:
		return by, coordinator.Concede{Dispute: d.ID}, true
	case d.Stage != dispute.StageTieBreaking:
		return by, argue(d, t), true
	case n(3) == 0:
		return by, coordinator.TieBreak{Dispute: d.ID, Vote: dispute.VoteUnserved}, true
	}
	return by, coordinator.TieBreak{Dispute: d.ID, Vote: dispute.Vote(1 + n(2)), Trace: dispute.Blind(by.Public(), t.Root())}, true
}

// argue returns the move with a trace for the stage of a dispute.
func argue(d dispute.Dispute, t check.Trace) coordinator.Message {
	switch d.Stage {
	case dispute.StageDefending:
		return coordinator.Defend{Dispute: d.ID, Trace: t.Root(), Proof: bisect.Prove(t.Leaves, 1)}
	case dispute.StageDescending:
		return coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(t.Leaves, d.Depth, d.Index)}
	}
	return coordinator.Evidence{Dispute: d.ID, Bytes: t.Evidence()}
}

// judge has the honest member do what it owes the checks and disputes of its run.
func (e *episode) judge() {
	for range 100 { // moves of all disputes; a bound, in case one is refused
		m, ok := e.owed()
		if !ok {
			return
		}
		if !e.send(e.member, goodRun, m) {
			return
		}
	}
}

// owed returns what the honest member owes a check or a dispute.
func (e *episode) owed() (coordinator.Message, bool) {
	v, ok := e.host.View(goodRun)
	if !ok {
		return nil, false
	}
	s := v.State
	i, ok := s.Find(e.member.Public())
	if !ok || s.Status(i) == coordinator.StatusEjected {
		return nil, false
	}
	for _, c := range s.Checks() {
		author, known := e.author(s, c.Member)
		if c.Verifier != i || c.Disputed || !known {
			continue
		}
		all := traces(s, c)
		if e.lies(s, c) {
			return coordinator.Accuse{Round: c.Round, Member: c.Member, Commitment: all[1].Result.Sign(author), Trace: dispute.Blind(e.member.Public(), all[0].Root())}, true
		}
		return coordinator.Pass{Round: c.Round, Member: c.Member, Commitment: all[0].Result.Sign(author), Gradient: check.Gradient(all[0].Value)}, true
	}
	for _, d := range s.Disputes() {
		t := traces(s, d.Check)[0]
		if d.Stage == dispute.StageTieBreaking {
			for _, tie := range d.TieBreakers {
				if tie.Member != i || tie.Vote != 0 {
					continue
				}
				vote := dispute.VoteRight
				if d.Unserved && e.lies(s, d.Check) || !d.Unserved && d.Commitment != t.Result {
					vote = dispute.VoteWrong
				}
				return coordinator.TieBreak{Dispute: d.ID, Vote: vote, Trace: dispute.Blind(e.member.Public(), t.Root())}, true
			}
			continue
		}
		accused := d.Accused == i && (d.Stage == dispute.StageDefending || d.Stage == dispute.StageDescending && !d.Revealed[dispute.Accused])
		accuser := d.Accuser == i && (d.Stage == dispute.StageEvidence || d.Stage == dispute.StageDescending && !d.Revealed[dispute.Accuser])
		if accused || accuser {
			return argue(d, t), true
		}
	}
	return nil, false
}
