package check

import (
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// move is a message that somebody may send, or time that passes.
type move struct {
	by      int // index of the key, or nobody
	value   uint64
	message coordinator.Message
	until   uint64 // the time that has come; 0 if none passes
	what    string
}

const nobody = -1

func (c *cast) env(m move, g ghost) coordinator.Env {
	env := coordinator.Env{NowMs: max(g.Now, m.until), Seed: c.seed, Value: m.value, Referee: Program{}}
	if m.by != nobody {
		env.Sender = c.keys[m.by].Public()
	}
	return env
}

// moves lists what may happen next, always in the same order.
func (c *cast) moves(s coordinator.State, g ghost) []move {
	var list []move
	say := func(by int, value uint64, m coordinator.Message, format string, args ...any) {
		list = append(list, move{by: by, value: value, message: m, what: c.called(by) + ": " + fmt.Sprintf(format, args...)})
	}
	for k := range c.keys {
		i, member := s.Find(c.keys[k].Public())
		c.comeAndGo(s, k, i, member, say)
		if member && s.Status(i) != coordinator.StatusEjected {
			c.roundMoves(s, k, i, say)
			c.verdicts(s, k, i, say)
			c.disputeMoves(s, k, i, say)
		}
	}
	if v := c.lied; v.Round != 0 {
		t := c.traces(s, v)
		say(0, 0, coordinator.Equivocation{A: c.sign(t[0].Result), B: c.sign(t[1].Result)}, "shows two commitments of %s", c.name(s.Key(v.Member)))
	}
	if until := c.next(s, g); until > 0 {
		list = append(list, move{
			by: nobody, message: coordinator.Tick{}, until: until, what: fmt.Sprintf("time passes until %.1f s", float64(until-c.born)/1000),
		})
	}
	return list
}

type say = func(by int, value uint64, m coordinator.Message, format string, args ...any)

// comeAndGo lists what a key may do about its membership and its tokens.
func (c *cast) comeAndGo(s coordinator.State, k int, i coordinator.Member, member bool, say say) {
	cheat := k >= c.honests
	switch {
	case !c.scene.people && !cheat:
		return
	case member && s.Status(i).Present():
		say(k, 0, coordinator.Withdraw{}, "withdraws")
	case member || k == 0 || k == c.honests || c.known(s, k-1): // new keys come in their order
		say(k, stake+cost, coordinator.Join{}, "joins with %d tokens", stake+cost)
	}
	if member {
		say(k, 0, coordinator.Claim{}, "claims")
	}
}

func (c *cast) known(s coordinator.State, k int) bool {
	_, ok := s.Find(c.keys[k].Public())
	return ok
}

// roundMoves lists what a member may do for the phase.
func (c *cast) roundMoves(s coordinator.State, k int, i coordinator.Member, say say) {
	if !c.scene.rounds {
		return
	}
	params, _ := s.Params()
	switch s.Phase() {
	case coordinator.Warmup:
		if s.Status(i) == coordinator.StatusWaiting {
			say(k, 0, coordinator.Ready{Epoch: s.Epoch(), Params: params}, "is ready")
		}
	case coordinator.Cooldown:
		if s.Checkpointer(i) {
			say(k, 0, coordinator.Checkpoint{Epoch: s.Epoch(), Params: params, Manifest: c.model}, "has written the checkpoint")
		}
	case coordinator.RoundTrain, coordinator.RoundWitness:
		r, _ := s.At(s.Round())
		if !r.Elected(i) || r.Reported(i) {
			return
		}
		say(k, 0, c.report(s, i, c.model, true, everybody), "reports that it holds all")
		if s.Phase() == coordinator.RoundWitness {
			last := coordinator.Member(s.Count() - 1)
			say(k, 0, c.report(s, i, c.model, false, func(j coordinator.Member) bool { return j != last }),
				"reports that it holds all but %s's result", c.name(s.Key(last)))
		}
		if k >= c.honests {
			say(k, 0, c.report(s, i, wire.Sum("check/bogus"), true, everybody), "reports other parameters")
			say(k, 0, c.report(s, i, c.model, false, func(coordinator.Member) bool { return false }), "reports that it holds nothing")
		}
	}
}

func everybody(coordinator.Member) bool { return true }

// report makes the report of a witness that holds the results of those for whom has is true.
func (c *cast) report(s coordinator.State, i coordinator.Member, params wire.Hash, complete bool, has func(coordinator.Member) bool) coordinator.Witness {
	r, _ := s.At(s.Round())
	m := coordinator.Witness{Round: r.Number(), Complete: complete, Params: params, Prev: params}
	a, ok := s.At(r.Attests())
	if !ok {
		return m
	}
	p := r.Filter()
	f := bloom.New(p)
	salt := s.Key(i)
	for j := range s.Count() {
		if a.Expected(j) && has(j) {
			m.Held = coordinator.SetHeld(m.Held, j)
			f.Add(p, salt[:], c.commitment(s, a.Number(), j).ID())
		}
	}
	m.Commitments = f
	return m
}

// commitment is what a member committed to.
func (c *cast) commitment(s coordinator.State, round coordinator.Round, i coordinator.Member) dispute.Commitment {
	r, _ := s.At(round)
	v := dispute.Check{Round: round, Epoch: r.Epoch(), Member: i, Share: batch.Hash(r.Share(i))}
	t := c.traces(s, v)
	if c.lies(v) {
		return t[1].Result
	}
	return t[0].Result
}

// traces are the ways to compute the share of a check, which names its round, epoch, member and
// share.
func (c *cast) traces(s coordinator.State, v dispute.Check) []Trace {
	return Traces(dispute.Case{Commitment: dispute.Commitment{
		Run: s.ID(), Epoch: v.Epoch, Round: v.Round, Member: v.Member, Share: v.Share, Params: c.model,
	}})
}

// lies reports whether the result of a check is the wrong one.
func (c *cast) lies(v dispute.Check) bool {
	return c.lied.Round != 0 && v.Round == c.lied.Round && v.Member == c.lied.Member
}

func (c *cast) sign(v dispute.Commitment) dispute.Signed {
	return v.Sign(c.keys[v.Member])
}

// verdicts lists what a member may say about the checks that it is to make.
func (c *cast) verdicts(s coordinator.State, k int, i coordinator.Member, say say) {
	for _, v := range s.Checks() {
		if v.Verifier != i || v.Disputed {
			continue
		}
		all := c.traces(s, v)
		theirs := all[0]
		if c.lies(v) {
			theirs = all[1]
		}
		signed, author := c.sign(theirs.Result), c.name(s.Key(v.Member))
		pass := coordinator.Pass{Round: v.Round, Member: v.Member, Commitment: signed, Gradient: Gradient(theirs.Value)}
		wrong := theirs.Name != all[0].Name
		if k < c.honests {
			switch {
			case !wrong:
				say(k, 0, pass, "passes %s's result", author)
			default:
				say(k, 0, coordinator.Accuse{Round: v.Round, Member: v.Member, Commitment: signed, Trace: dispute.Blind(s.Key(i), all[0].Root())}, "accuses %s", author)
				if !v.Reassigned {
					say(k, 0, coordinator.Unserved{Round: v.Round, Member: v.Member}, "is not served by %s", author)
				}
			}
			continue
		}
		say(k, 0, pass, "passes %s's result", author)
		pass.Gradient = wire.Sum("check/guess")
		say(k, 0, pass, "passes %s's result unseen", author)
		for _, t := range all {
			say(k, 0, coordinator.Accuse{Round: v.Round, Member: v.Member, Commitment: signed, Trace: dispute.Blind(s.Key(i), t.Root())}, "accuses %s with trace %q", author, t.Name)
		}
		say(k, 0, coordinator.Unserved{Round: v.Round, Member: v.Member}, "says that %s serves nothing", author)
	}
}

// disputeMoves lists what a member may do in the disputes that it has a part in.
func (c *cast) disputeMoves(s coordinator.State, k int, i coordinator.Member, say say) {
	cheat := k >= c.honests
	for _, d := range s.Disputes() {
		all := c.traces(s, d.Check)
		mine := all[:1]
		if cheat {
			mine = all
		}
		lie := c.lies(d.Check)
		for _, v := range d.TieBreakers {
			if v.Member == i && v.Vote == 0 && d.Stage == dispute.StageTieBreaking {
				c.votes(s, k, d, lie, mine, say)
			}
		}
		switch {
		case d.Stage == dispute.StageTieBreaking, i != d.Accused && i != d.Accuser:
			continue
		case cheat:
			say(k, 0, coordinator.Concede{Dispute: d.ID}, "concedes dispute %d", d.ID)
		}
		for _, t := range mine {
			switch {
			case d.Stage == dispute.StageDefending && i == d.Accused:
				say(k, 0, coordinator.Defend{Dispute: d.ID, Trace: t.Root(), Proof: bisect.Prove(t.Leaves, ops-1)}, "shows trace %q in dispute %d", t.Name, d.ID)
			case d.Stage == dispute.StageDescending:
				say(k, 0, coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(t.Leaves, d.Depth, d.Index)}, "reveals trace %q in dispute %d", t.Name, d.ID)
			case d.Stage == dispute.StageEvidence && i == d.Accuser:
				say(k, 0, coordinator.Evidence{Dispute: d.ID, Bytes: t.Evidence()}, "opens trace %q in dispute %d", t.Name, d.ID)
			}
		}
	}
}

// votes lists what a tie-breaker may say.
func (c *cast) votes(s coordinator.State, k int, d dispute.Dispute, lie bool, mine []Trace, say say) {
	root := mine[0].Root()
	vote := func(v dispute.Vote, trace wire.Hash, how string) {
		say(k, 0, coordinator.TieBreak{Dispute: d.ID, Vote: v, Trace: dispute.Blind(c.keys[k].Public(), trace)}, "votes in dispute %d that %s", d.ID, how)
	}
	author := c.name(s.Key(d.Accused))
	switch {
	case k >= c.honests:
		vote(dispute.VoteRight, root, author+" is right")
		vote(dispute.VoteUnserved, wire.Hash{}, author+" serves nothing")
		for _, t := range mine {
			vote(dispute.VoteWrong, t.Root(), fmt.Sprintf("%s is wrong, with trace %q", author, t.Name))
		}
		return
	case lie:
		vote(dispute.VoteWrong, root, author+" is wrong")
	default:
		vote(dispute.VoteRight, root, author+" is right")
	}
	if d.Unserved && c.cheats(s.Key(d.Accused)) {
		vote(dispute.VoteUnserved, wire.Hash{}, author+" serves nothing")
	}
}

// next returns the next time at which something is due, or 0 if there is none or an honest member
// owes a dispute a move.
func (c *cast) next(s coordinator.State, g ghost) uint64 {
	until := uint64(0)
	due := func(at uint64) {
		if at > g.Now && (until == 0 || at < until) {
			until = at
		}
	}
	due(s.Deadline())
	for _, v := range s.Checks() {
		if !v.Disputed {
			due(v.DeadlineMs)
		}
	}
	for _, d := range s.Disputes() {
		due(d.DeadlineMs)
		if c.owes(s, d) {
			return 0
		}
	}
	for i := range s.Count() {
		if m := s.Member(i); c.scene.people && m.Stake > 0 {
			due(m.ReleaseMs)
		}
	}
	return until
}

// owes reports whether an honest party has a move to make.
func (c *cast) owes(s coordinator.State, d dispute.Dispute) bool {
	plays := func(i coordinator.Member) bool { return i != dispute.NoMember && !c.cheats(s.Key(i)) }
	accused, accuser := plays(d.Accused), plays(d.Accuser)
	switch d.Stage {
	case dispute.StageDefending:
		return accused
	case dispute.StageDescending:
		return accused && !d.Revealed[dispute.Accused] || accuser && !d.Revealed[dispute.Accuser]
	case dispute.StageEvidence:
		return accuser
	}
	return false
}
