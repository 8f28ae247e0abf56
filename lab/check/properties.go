package check

import (
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
)

// Property is something that must hold after every message.
type Property struct {
	Name string
	Text string
	// check returns what is wrong, or "". It may carry the history on.
	check func(*cast, *ghost, transition) string
}

// Properties are what must hold. Three more are checked as messages are applied: a refused message
// leaves the state as it was ("refusals"), no message makes the rules panic ("no panic"), and every
// state can be opened ("bounded").
var Properties = []Property{
	{"tokens", "all tokens are somebody's, and none comes or goes but with a message", tokens},
	{"points", "each accepted sequence is paid once, and each recomputed one", points},
	{"paid once", "nobody is paid more points than are settled, or settles more than it has", paidOnce},
	{"honest", "no honest member is convicted of an offence that ejects", honest},
	{"liars", "a liar against whom an honest member argues is convicted", liars},
	{"disputes end", "a dispute ends in time", disputesEnd},
	{"settled", "what is accepted, agreed or settled stays so", settled},
	{"progress", "a phase ends when its time is over", progress},
	{"bounded", "no table outgrows its places", bounded},
}

// broken is a property that does not hold, and why.
type broken struct{ property, text string }

// ghost is the history that the properties need and the state does not keep.
type ghost struct {
	Now      uint64
	Accepted uint64               // bitmap of the sequences accepted so far
	Rewarded uint64               // points for accepted sequences
	Opened   [disputesSeen]uint64 // when each dispute opened, by its number less 1
}

const (
	disputesSeen  = 8
	disputesMax   = 16 // places for disputes in a state
	sequencesSeen = 64
)

// transition is one accepted message.
type transition struct {
	old, new coordinator.State
	env      coordinator.Env
	move     move
	payee    key.Public
	due      uint64 // what the state said that the message would pay
}

// judge checks the properties after a message, and carries the history on.
func (c *cast) judge(g *ghost, t transition) *broken {
	for _, p := range Properties {
		if text := p.check(c, g, t); text != "" {
			return &broken{p.Name, text}
		}
	}
	return nil
}

func tokens(_ *cast, _ *ghost, t transition) string {
	s := t.new
	sum := s.Treasury()
	for i := range s.Count() {
		m := s.Member(i)
		sum += m.Stake + m.Balance + m.Unvested
	}
	to, paid := s.Payout()
	switch {
	case sum != s.Escrow():
		return fmt.Sprintf("members and treasury have %d, the escrow is %d", sum, s.Escrow())
	case s.Escrow()+paid != t.old.Escrow()+t.env.Value:
		return fmt.Sprintf("the escrow was %d, %d came and %d went, and it is %d", t.old.Escrow(), t.env.Value, paid, s.Escrow())
	case paid != t.due || paid > 0 && to != t.payee:
		return fmt.Sprintf("%d was due, %d was paid", t.due, paid)
	}
	return ""
}

// recent calls visit with each round of the ring, before and after the message, while both hold it.
func recent(t transition, visit func(was, is coordinator.RoundState)) {
	last := t.old.Round()
	for n := last - min(last, 3); n <= last; n++ {
		was, had := t.old.At(n)
		is, has := t.new.At(n)
		if had && has {
			visit(was, is)
		}
	}
}

func points(_ *cast, g *ghost, t transition) (text string) {
	recent(t, func(was, is coordinator.RoundState) {
		_, agreedBefore := was.Agreed()
		_, agreed := is.Agreed()
		accepts, pays := is.Final() && !was.Final(), agreed && !agreedBefore
		if !accepts && !pays {
			return
		}
		for i := range t.new.Count() {
			if !is.Accepted(i) {
				continue
			}
			for _, span := range is.Share(i) {
				for q := span.Start; q < span.End() && q < sequencesSeen && accepts; q++ {
					if g.Accepted>>q&1 == 1 {
						text = fmt.Sprintf("sequence %d is accepted twice", q)
					}
					g.Accepted |= 1 << q
				}
				if pays && t.new.Status(i) != coordinator.StatusEjected {
					g.Rewarded += uint64(span.Count)
				}
			}
		}
	})
	s := t.new
	sum := s.PointsRetired()
	for i := range s.Count() {
		sum += s.Member(i).Points
	}
	if sum != s.PointsTotal() || s.PointsTotal() != g.Rewarded+s.PointsVerified() {
		return fmt.Sprintf("members and retired have %d of %d points, for %d accepted sequences and %d recomputed ones",
			sum, s.PointsTotal(), g.Rewarded, s.PointsVerified())
	}
	return text
}

func paidOnce(_ *cast, _ *ghost, t transition) string {
	for i := range t.new.Count() {
		if m := t.new.Member(i); m.Claimed > m.Settled || m.Settled > m.Points {
			return fmt.Sprintf("member %d: %d points claimed, %d settled, %d in all", i, m.Claimed, m.Settled, m.Points)
		}
	}
	return ""
}

func honest(c *cast, _ *ghost, t transition) string {
	for _, v := range t.new.Convictions() {
		if v.Number > t.old.ConvictionsTotal() && !v.Offence.Lesser() && !c.cheats(v.Key) {
			return fmt.Sprintf("%s, who is honest, is convicted: %v", c.name(v.Key), v.Offence)
		}
	}
	return ""
}

// liars looks at disputes that end while an honest member argues against a result that is wrong.
func liars(c *cast, _ *ghost, t transition) string {
	for _, d := range t.old.Disputes() {
		_, open := t.new.Dispute(d.ID)
		if open || d.Unserved || d.Accuser == dispute.NoMember || c.cheats(t.old.Key(d.Accuser)) {
			continue
		}
		right := Traces(d.Case())[0].Result
		if dispute.Outcome(right) == dispute.Outcome(d.Commitment) {
			continue
		}
		if i, ok := t.new.Find(t.old.Key(d.Accused)); ok && t.new.Status(i) != coordinator.StatusEjected {
			return fmt.Sprintf("%s got away with a wrong result", c.name(t.old.Key(d.Accused)))
		}
	}
	return ""
}

func disputesEnd(_ *cast, g *ghost, t transition) string {
	for _, d := range t.new.Disputes() {
		if d.ID > disputesSeen {
			continue
		}
		since := &g.Opened[d.ID-1]
		if *since == 0 {
			*since = t.env.NowMs
		}
		// The votes; then the moves of the accuser and of three tie-breakers in its place, of which
		// each is a trace, one reveal of the operations, and evidence.
		if age := t.env.NowMs - *since; age > verifyMs+4*3*disputeMs {
			return fmt.Sprintf("dispute %d is open for %d s", d.ID, age/1000)
		}
	}
	return ""
}

func settled(_ *cast, _ *ghost, t transition) (text string) {
	recent(t, func(was, is coordinator.RoundState) {
		before, agreed := was.Agreed()
		after, still := is.Agreed()
		switch {
		case agreed && (!still || before != after):
			text = fmt.Sprintf("round %d had agreed parameters", was.Number())
		case was.Final() && !is.Final():
			text = fmt.Sprintf("round %d was final", was.Number())
		}
		for i := range t.old.Count() {
			if was.Final() && was.Accepted(i) != is.Accepted(i) {
				text = fmt.Sprintf("round %d: member %d was accepted: %v", was.Number(), i, was.Accepted(i))
			}
		}
	})
	_, was := t.old.Params()
	_, is := t.new.Params()
	if is < was && t.new.Rollbacks() == t.old.Rollbacks() {
		return fmt.Sprintf("the agreed parameters were of round %d, and are of round %d", was, is)
	}
	for i := range t.old.Count() {
		a, b := t.old.Member(i), t.new.Member(i)
		if a.Key == b.Key && b.Settled < a.Settled {
			return fmt.Sprintf("member %d had %d settled points, and has %d", i, a.Settled, b.Settled)
		}
	}
	return text
}

func progress(_ *cast, _ *ghost, t transition) string {
	a, b := t.old, t.new
	over := a.Deadline() > 0 && t.env.NowMs >= a.Deadline()
	if over && a.Phase() == coordinator.WaitingForMembers {
		over = a.Present() >= a.Config().StartMembers && b.Present() >= a.Config().StartMembers
	}
	if over && a.Phase() == b.Phase() && a.Round() == b.Round() && a.Epoch() == b.Epoch() {
		return fmt.Sprintf("%v sticks in epoch %d, round %d", a.Phase(), a.Epoch(), a.Round())
	}
	return ""
}

func bounded(_ *cast, _ *ghost, t transition) string {
	s := t.new
	if len(s.Bytes()) != len(t.old.Bytes()) || uint32(s.Count()) > s.Limits().Members || len(s.Disputes()) > disputesMax {
		return fmt.Sprintf("%d bytes, %d members, %d disputes", len(s.Bytes()), s.Count(), len(s.Disputes()))
	}
	return ""
}
